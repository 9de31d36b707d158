import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Programs that know nothing of Yonder, and a remote that is not a folder (Programs/remotes/programs.py).
    @Suite struct RemotePrograms {
        /// A remote, and how many milliseconds away it is.
        struct Place: Sendable, CustomStringConvertible {
            var kind: FarRemote.Kind
            /// Which one for WebDAV.
            var server = DAVServer.Kind.apache
            var milliseconds: Int

            var description: String { "\(kind == .webDAV ? server.description : kind.description), \(milliseconds) ms" }
        }

        private static var places: [Place] {
            let distances = hasTimeForLongTests ? [0, 50] : [0]
            let servers = hasTimeForLongTests ? DAVServer.Kind.installed : DAVServer.Kind.installed.prefix(1) + []
            return distances.flatMap { milliseconds in
                FarRemote.Kind.installed.flatMap { kind in
                    (kind == .webDAV ? servers : [.apache]).map {
                        Place(kind: kind, server: $0, milliseconds: milliseconds)
                    }
                }
            }
        }

        @Test(
            "PATH-19: git, make, sqlite3, rsync, tar, editors and python work, and all they made arrives",
            .timeLimit(.minutes(60)), arguments: places)
        func work(at place: Place) async throws {
            try await FarRemote.run(
                place.kind, on: place.server, milliseconds: place.milliseconds
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
