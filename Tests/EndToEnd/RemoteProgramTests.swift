import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Programs that know nothing of Yonder, and a remote that is not a folder (Programs/remotes/programs.py).
    @Suite struct RemotePrograms {
        /// A remote, and how many milliseconds away it is.
        struct Place: Sendable, CustomStringConvertible {
            /// nil is a bucket.
            var server: DAVServer.Kind?
            var milliseconds: Int

            var description: String { "\(server?.description ?? "s3"), \(milliseconds) ms" }
        }

        private static var places: [Place] {
            let distances = hasTimeForLongTests ? [0, 50] : [0]
            let servers = hasTimeForLongTests ? DAVServer.Kind.installed : DAVServer.Kind.installed.prefix(1) + []
            return (servers + [nil]).flatMap { server in
                distances.map { Place(server: server, milliseconds: $0) }
            }
        }

        @Test(
            "PATH-19: git, make, sqlite3, rsync, tar, editors and python work, and all they made arrives",
            .timeLimit(.minutes(60)), arguments: places)
        func work(at place: Place) async throws {
            try await FarRemote.run(
                place.server == nil ? .s3 : .webDAV, on: place.server ?? .apache, milliseconds: place.milliseconds
            ) { remote, yonder async throws in
                try await remote.mount(yonder)
                let scratch = try yonder.directory.makeDirectory("scratch")
                let words =
                    ["python3", Relay.programs + "/programs.py", yonder.mount.string, scratch.string]
                    + ["--yonder", Installation.program] + remote.place
                    + ["--files", hasTimeForLongTests ? "3000" : "40"]
                let outcome = try await Command(words, environment: yonder.environment, seconds: 3000).run()
                #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
            }
        }
    }
}
