import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Random sequences of calls on a few names (Programs/remotes/restructurings.py).
    @Suite struct Restructurings {
        /// A folder on this machine, and the servers; with YONDER_REMOTE only the one that it names.
        private static var places: [String] {
            let chosen = ProcessInfo.processInfo.environment["YONDER_REMOTE"]
            return [chosen ?? "folder"].filter { $0 == "folder" } + FarRemote.Kind.installed.map(\.rawValue)
        }

        @Test(
            "SEND-7: whatever is renamed, exchanged, replaced and made again, before its upload and after it, arrives, also over a SIGKILL",
            .timeLimit(.minutes(25)), arguments: places)
        func arrive(at place: String) async throws {
            guard let kind = FarRemote.Kind(rawValue: place) else {
                return try await Installation.run { yonder in
                    try await yonder.mountSource()
                    try await run(yonder, ["--folder", yonder.source.string])
                }
            }
            try await FarRemote.run(kind) { remote, yonder async throws in
                try await remote.mount(yonder)
                try await run(yonder, remote.place)
            }
        }

        private func run(_ yonder: Installation, _ place: [String]) async throws {
            let seconds = FaultRun.seconds ?? (hasTimeForLongTests ? 600 : 20)
            let plain = try yonder.directory.makeDirectory("plain")
            let words =
                ["python3", Relay.programs + "/restructurings.py", yonder.mount.string, plain.string]
                + ["--yonder", Installation.program] + place + (canContinueMounts ? ["--kill"] : [])
                + ["--seconds", String(seconds), "--seed", String(FaultRun.seed(usually: 1))]
            let outcome = try await Command(words, environment: yonder.environment, seconds: seconds + 300).run()
            #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
        }
    }
}
