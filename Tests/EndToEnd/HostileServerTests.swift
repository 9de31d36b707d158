import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Servers that are hostile in one way per folder or bucket (Programs/hostile): whatever they answer, the daemon lives, its
    /// memory stays bounded, and the honest files beside the hostile ones can be read.
    @Suite(.tags(.long)) struct HostileServers {
        enum Kind: String, CaseIterable, Sendable {
            case webDAV, s3

            var program: String { "EndToEnd/Programs/hostile/\(self == .webDAV ? "dav" : "store").py" }

            /// What a run without time for long tests visits: one scenario of each class.
            var fewScenarios: Set<String> {
                switch self {
                case .webDAV:
                    [
                        "name-dot-dot", "name-control", "size-2-63", "date-far", "xml-entities", "xml-attributes",
                        "length-longer",
                        "range-one-byte", "redirect-loop", "etag-changes", "status-401", "put-forgets",
                    ]
                case .s3:
                    [
                        "key-dot-dot", "key-control", "size-2-63", "date-far", "xml-deep", "length-longer",
                        "range-one-byte",
                        "token-cycle", "redirect-region", "etag-changes", "status-403", "put-other-etag",
                    ]
                }
            }

            func mountArguments(_ scenario: String, port: Int) -> [String] {
                switch self {
                case .webDAV: ["webdav://127.0.0.1:\(port)/\(scenario)"]
                case .s3: ["s3://\(scenario)", "--endpoint", "http://127.0.0.1:\(port)", "--region", "us-east-1"]
                }
            }
        }

        /// By how much one scenario may raise the daemon's peak resident size, in KiB.
        private static let memoryBound = 150 << 10

        @Test(
            "the daemon survives a hostile server with bounded memory, and the honest files stay readable",
            .timeLimit(.minutes(30)), arguments: Kind.allCases)
        func survives(_ kind: Kind) async throws {
            let server = try await ScriptedServer(program: kind.program)
            defer { server.stop() }
            let all = try server.note("scenarios").split(separator: "\n").map(String.init)
            try #require(all.count >= 40)
            let chosen = ProcessInfo.processInfo.environment["YONDER_SCENARIOS"].map {
                Set($0.split(separator: ",").map(String.init))
            }
            let wanted = chosen ?? (hasTimeForLongTests ? Set(all) : kind.fewScenarios)
            let scenarios = all.filter { wanted.contains($0) }
            try await Installation.run { installation in
                let yonder = installation.with([
                    "NETRC": "/nonexistent", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testing",
                    "HOME": installation.directory.path.string,
                ])
                var daemon: Int32?
                for scenario in scenarios {
                    let began = ContinuousClock.now
                    let arguments = ["mount"] + kind.mountArguments(scenario, port: server.port)
                    let mounted = try await yonder.yonder(
                        words: arguments + [yonder.mount.string, "--name", scenario])
                    #expect(mounted.status == 0, "\(scenario): \(mounted.errors)")
                    guard mounted.status == 0, let process = yonder.daemon else { continue }
                    #expect(daemon == nil || daemon == process, "\(scenario): the daemon is another one")
                    daemon = process
                    // Only root may (ACCESS-3); else what counts is how far a scenario exceeds those before it.
                    if FUSEAvailability.isRoot { try Self.resetPeak(of: process) }
                    let before = try Self.peak(of: process)
                    let visit = try await Command.run(
                        "python3", Self.visitor, yonder.mount.string, seconds: 240)
                    #expect(visit.status == 0, "\(scenario): \(visit.output) \(visit.errors)")
                    if scenario.hasPrefix("put") || scenario.hasPrefix("move") || scenario.hasPrefix("delete") {
                        // Conflict copies and retries have time to multiply.
                        _ = try await yonder.yonder("wait", scenario, "--timeout", "6")
                        let names = try await Command.run("ls", yonder["evil"]).output.split(separator: "\n")
                        #expect(names.count <= 6, "\(scenario): \(names.count) names, such as \(names.prefix(8))")
                    }
                    let peak = try? Self.peak(of: process)
                    #expect(peak != nil, "\(scenario): the daemon has ended")
                    #expect((peak ?? 0) - before < Self.memoryBound, "\(scenario): from \(before) to \(peak ?? 0) KiB")
                    let unmounted = try await yonder.yonder("unmount", scenario)
                    #expect(unmounted.status == 0, "\(scenario): \(unmounted.errors)")
                    let removed = try await yonder.yonder("remove", scenario, "--keep", "none", "--force")
                    #expect(removed.status == 0, "\(scenario): \(removed.errors)")
                    if chosen != nil || hasTimeForLongTests {
                        print(
                            "hostile \(kind) \(scenario): \(ContinuousClock.now - began), \((peak ?? 0) - before) KiB")
                    }
                }
                let log = try String(contentsOfFile: yonder.directory["state/yonderd.log"].string, encoding: .utf8)
                #expect(
                    !log.split(separator: "\n").contains { $0.hasPrefix("yonderd error forged") }, "a line was forged")
                #expect(!log.utf8.contains(0x1B), "an escape sequence reached the log")
            }
        }

        private static let visitor = Relay.programs.replacing("/remotes", with: "/hostile") + "/visit.py"

        /// The daemon's peak resident size since the last reset, in KiB.
        private static func peak(of process: Int32) throws -> Int {
            let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
            return try #require(line.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }.first)
        }

        private static func resetPeak(of process: Int32) throws {
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "/proc/\(process)/clear_refs"))
            try file.write(contentsOf: Data("5".utf8))
            try file.close()
        }
    }
}
