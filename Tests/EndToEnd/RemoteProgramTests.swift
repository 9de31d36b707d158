import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Programs that know nothing of Yonder, and a remote that is not a folder (Programs/remotes/programs.py).
    @Suite(.enabled(if: !DAVServer.Kind.installed.isEmpty, "no WebDAV server is installed")) struct RemotePrograms {
        /// A server, and how many milliseconds away it is.
        struct Place: Sendable, CustomStringConvertible {
            var kind: DAVServer.Kind
            var milliseconds: Int

            var description: String { "\(kind), \(milliseconds) ms" }
        }

        private static var places: [Place] {
            let distances = hasTimeForLongTests ? [0, 50] : [0]
            let kinds = hasTimeForLongTests ? DAVServer.Kind.installed : DAVServer.Kind.installed.prefix(1) + []
            return kinds.flatMap { kind in distances.map { Place(kind: kind, milliseconds: $0) } }
        }

        @Test(
            "S206: git, make, sqlite3, rsync, tar, editors and python work, and all they made arrives",
            .timeLimit(.minutes(60)), arguments: places)
        func work(at place: Place) async throws {
            let server = try await DAVServer.start(place.kind)
            do {
                let relay = try await Relay(to: server.port, milliseconds: place.milliseconds)
                do {
                    try await Installation.run { installation in
                        try await work(installation.with(["NETRC": "/nonexistent"]), server, relay)
                    }
                } catch {
                    relay.stop()
                    throw error
                }
                relay.stop()
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }

        private func work(_ yonder: Installation, _ server: DAVServer, _ relay: Relay) async throws {
            let source = "webdav://127.0.0.1:\(relay.port)/"
            let mounted = try await yonder.yonder("mount", source, yonder.mount.string)
            try #require(mounted.status == 0, "\(mounted.errors)")
            let scratch = try yonder.directory.makeDirectory("scratch")
            let words =
                ["python3", Relay.programs + "/programs.py", yonder.mount.string, scratch.string]
                + ["--yonder", Installation.program, "--folder", server.root.string]
                + ["--files", hasTimeForLongTests ? "3000" : "40"]
            let outcome = try await Command(words, environment: yonder.environment, seconds: 3000).run()
            #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
        }
    }
}
