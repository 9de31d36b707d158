import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The keeper below a service manager, as in the units of the packages.
    @Suite(.serialized) struct KeeperUnits {
        /// A program that plays systemd for `yonder-keeper`.
        private struct Manager {
            let directory: FilePath
            let program: BackgroundProgram

            init(
                in directory: FilePath, socket: String = "", worker: [String], environment: [String: String] = [:]
            ) async throws {
                let folder = URL(fileURLWithPath: Installation.program).deletingLastPathComponent().path
                self.directory = directory
                program = try await BackgroundProgram(
                    ["/usr/bin/python3", Self.script, directory.string, socket, "\(folder)/yonder-keeper", "--"]
                        + worker.map { $0 == "yonderd" ? "\(folder)/yonderd" : $0 }, environment: environment)
            }

            /// The messages that it has received, and the ends of keepers.
            var messages: [String] {
                let text = try? String(contentsOfFile: directory.appending("messages").string, encoding: .utf8)
                return text?.split(separator: "\n").map(String.init) ?? []
            }

            /// The keeper is to be started again when it has ended.
            func startAgain() throws { try Data().write(to: URL(fileURLWithPath: directory.appending("again").string)) }

            private static let script = programs.appendingPathComponent("manager.py").path
        }

        private static let programs = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Programs/keeper")

        private struct Start: Decodable {
            var pid: Int32
            var parent: Int32
            var inherited: [[String]]
        }

        private func start(_ number: Int, in directory: FilePath) async throws -> Start {
            let path = directory.appending("\(number).json").string
            try #require(await eventually(within: .seconds(15)) { FileManager.default.fileExists(atPath: path) })
            return try JSONDecoder().decode(Start.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        }

        @Test("TAKEOVER-11: the service manager has a copy of what the keeper stores, for the next keeper")
        func storesCopies() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let plan = ["store one first store gone x ready remove gone barrier sleep 60", "ready sleep 60"]
            let words = String(decoding: try JSONEncoder().encode(plan), as: UTF8.self)
            let worker = Self.programs.appendingPathComponent("worker.py").path
            let manager = try await Manager(
                in: directory.path, worker: ["/usr/bin/python3", worker, directory.path.string, words])
            defer { manager.program.kill() }
            let first = try await start(0, in: directory.path)
            #expect(await eventually { manager.messages.contains("FDSTOREREMOVE=1 FDNAME=gone") })
            #expect(await eventually { manager.messages.contains("WATCHDOG=1") })
            #expect(
                manager.messages.filter { $0 != "WATCHDOG=1" } == [
                    "FDSTORE=1 FDNAME=one FDPOLL=0", "FDSTORE=1 FDNAME=gone FDPOLL=0", "READY=1", "STATUS=ready",
                    "FDSTOREREMOVE=1 FDNAME=gone",
                ])
            try manager.startAgain()
            kill(first.parent, SIGKILL)
            let second = try await start(1, in: directory.path)
            #expect(second.parent != first.parent && second.inherited == [["one", "first"]])
            // `systemctl restart`: the worker is told, and the copies stay.
            try manager.startAgain()
            kill(second.parent, SIGUSR1)
            let third = try await start(2, in: directory.path)
            #expect(third.inherited == [["one", "first"]])
            #expect(manager.messages.contains("end 0"))
            // `systemctl stop`.
            kill(third.parent, SIGTERM)
            #expect(await manager.program.ends())
            #expect(manager.messages.last == "end \(128 + SIGTERM)")
        }

        @Test("SIGUSR1 does nothing without a service manager, which would start the next keeper")
        func withoutManager() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let worker = Self.programs.appendingPathComponent("worker.py").path
            let folder = URL(fileURLWithPath: Installation.program).deletingLastPathComponent().path
            let keeper = try await BackgroundProgram(
                "\(folder)/yonder-keeper", "--", "/usr/bin/python3", worker, directory.path.string,
                #"["ready sleep 60"]"#)
            let only = try await start(0, in: directory.path)
            defer {
                keeper.kill()
                kill(only.pid, SIGKILL)
            }
            kill(keeper.processIdentifier, SIGUSR1)
            // In order: it has handled the other one when it handles this.
            kill(keeper.processIdentifier, SIGTERM)
            #expect(await keeper.ends())
            #expect(keeper.status == 128 + SIGTERM)
        }

        @Test("TAKEOVER-11: a mount with open files outlives the keeper, and its restart, below a service manager")
        func mountsOutliveTheKeeper() async throws {
            try await Installation.run { yonder in
                let directory = try yonder.directory.makeDirectory("manager")
                let socket = yonder.directory["socket"].string
                let manager = try await Manager(
                    in: directory, socket: socket, worker: ["yonderd"], environment: yonder.environment)
                defer { manager.program.kill() }
                try #require(await eventually { FilePath(socket).acceptsConnections })
                try yonder.write("x", to: "file")
                // It waits for the daemon behind the socket, and starts no other.
                try await yonder.mountSource()
                #expect(yonder.keeper != nil)
                let device = try await Command.run("stat", "-c", "%d", yonder.mount.string).line
                let open = try FileDescriptor.open(
                    yonder["open"], .readWrite, options: .create, permissions: .ownerReadWrite)
                defer { try? open.close() }
                for signal in canContinueMounts ? [SIGUSR1, SIGKILL, SIGUSR1] : [] {
                    let (keeper, worker) = (try #require(yonder.keeper), yonder.daemon)
                    try manager.startAgain()
                    kill(keeper, signal)
                    #expect(await eventually(within: .seconds(15)) { yonder.daemon != worker && yonder.keeper != nil })
                    #expect(yonder.keeper != keeper)
                    #expect(try open.writeAll("more".utf8) == 4)
                    #expect(try await Command.run("cat", yonder["file"]).output == "x")
                    #expect(try await Command.run("stat", "-c", "%d", yonder.mount.string).line == device)
                }
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("open") == String(repeating: "more", count: canContinueMounts ? 3 : 0))
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(await manager.program.ends(within: .seconds(15)))
                #expect(manager.program.status == 0)
                // It belongs to the service manager.
                #expect(FileManager.default.fileExists(atPath: socket))
            }
        }

        @Test("a command does not wait for a daemon of a unit that another daemon keeps from starting")
        func lockedOut() async throws {
            try await Installation.mounted { yonder async throws in
                let directory = try yonder.directory.makeDirectory("manager")
                let other = yonder.with(["YONDER_SOCKET": yonder.directory["other"].string])
                let manager = try await Manager(
                    in: directory, socket: yonder.directory["other"].string, worker: ["yonderd"],
                    environment: other.environment)
                defer { manager.program.kill() }
                try #require(await eventually { yonder.directory["other"].acceptsConnections })
                let refused = try await other.yonder("status", seconds: 30)
                #expect(refused.status != 0)
                #expect(refused.errors.contains("another daemon uses this state directory"), "\(refused.errors)")
                #expect(await manager.program.ends(within: .seconds(15)))
                #expect(try await yonder.yonder("status").status == 0)
            }
        }

        @Test("ACCESS-1: a command for which a unit starts the daemon learns which directory the daemon refuses")
        func refusedDirectory() async throws {
            try await Installation.run { installation async throws in
                let configuration = try installation.directory.makeDirectory("config").string
                #expect(try await Command.run("chmod", "777", configuration).status == 0)
                let yonder = installation.with(["YONDER_CONFIG": configuration + "/config.toml"])
                let socket = yonder.directory["socket"]
                // systemd starts the daemon when the command has connected.
                let line = "sleep 2; exec '\(Installation.program)d'"
                let manager = try await Manager(
                    in: try yonder.directory.makeDirectory("manager"), socket: socket.string,
                    worker: ["/bin/sh", "-c", line], environment: yonder.environment)
                defer { manager.program.kill() }
                try #require(await eventually { socket.acceptsConnections })
                let refused = try await yonder.yonder("status", seconds: 30)
                refused.expectFailure(77, saying: "chmod go-w \(configuration)")
                #expect(await manager.program.ends(within: .seconds(15)))
                #expect(manager.program.status == 77)
            }
        }

        @Test("a socket of a unit that is not the daemon's is refused")
        func otherSocket() async throws {
            try await Installation.run { yonder in
                let directory = try yonder.directory.makeDirectory("manager")
                let manager = try await Manager(
                    in: directory, socket: yonder.directory["other"].string, worker: ["yonderd"],
                    environment: yonder.environment)
                defer { manager.program.kill() }
                #expect(await manager.program.ends(within: .seconds(15)))
                #expect(manager.program.status == 1)
            }
        }
    }
}
