import SystemPackage
import Foundation
import TestSupport
import Testing

extension RealMount {
    /// `yonder events`, while domains are mounted and unmounted.
    @Suite struct FollowedEvents {
        /// `yonder events` in the background.
        private struct Listener {
            let program: BackgroundProgram
            let log: String

            /// - Parameter name: the domain; nil for all.
            init(_ yonder: Installation, name: String? = nil) async throws {
                log = yonder.directory["events-\(name ?? "all")"].string
                program = try await BackgroundProgram(
                    ["sh", "-c", #"exec "$0" events --json $2 >"$1""#, Installation.program, log, name ?? ""],
                    environment: yonder.environment)
            }

            /// Whether it is connected to the daemon, within some seconds.
            func isConnected() async -> Bool {
                let folder = "/proc/\(program.processIdentifier)/fd"
                return await eventually(within: .seconds(10)) {
                    let files = FileManager.default
                    return ((try? files.contentsOfDirectory(atPath: folder)) ?? []).contains {
                        (try? files.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))?.hasPrefix("socket:") == true
                    }
                }
            }

            /// Whether it has told that an item whose name begins with a word was created on the remote.
            func hasTold(of word: String) -> Bool {
                let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
                return text.split(separator: "\n").contains {
                    $0.contains(#""kind":"created""#) && $0.contains("/\(word)")
                }
            }
        }

        @Test("CMD-21: the events of all domains include those of domains that are mounted later")
        func laterMounts() async throws {
            try await Installation.run { yonder async throws in
                // A daemon without a mount.
                try await yonder.mountSource()
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let listener = try await Listener(yonder)
                defer { listener.program.kill() }
                #expect(await listener.isConnected())
                for name in ["first", "second"] {
                    try await yonder.mountSource()
                    try await yonder.shell("echo x >\(name)")
                    #expect(await eventually(within: .seconds(20)) { listener.hasTold(of: name) }, "\(name)")
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    #expect(listener.program.isRunning)
                }
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(await listener.program.ends(within: .seconds(10)))
                #expect(listener.program.status == 0)
            }
        }

        @Test("CMD-21: the events of one domain end with its mount")
        func endOfMount() async throws {
            try await Installation.mounted { yonder async throws in
                let listener = try await Listener(yonder, name: "mount")
                defer { listener.program.kill() }
                try await yonder.expectListening(to: listener.log)
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(await listener.program.ends(within: .seconds(10)))
                #expect(listener.program.status == 0)
            }
        }
    }
}
