import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What other programs learn of conflicts.
    @Suite struct ConflictEvents {
        @Test("CONFLICT-1: a conflict copy is an event") func isTold() async throws {
            try await Installation.mounted(["letter.txt": "first"]) { yonder async throws in
                let outcome = try await yonder.run(
                    """
                    set -e
                    cat "$1/letter.txt" > /dev/null
                    "$4" events --json > "$3" & listener=$!
                    trap 'kill $listener' EXIT
                    # It listens when it tells what happens.
                    until grep -q created "$3"; do echo x > "$1/other-$((turn = turn + 1))"; yonder wait; done
                    yonder pause mount > /dev/null
                    echo here > "$1/letter.txt"
                    echo there, and longer > "$2/letter.txt"
                    yonder resume mount > /dev/null
                    for turn in $(seq 100); do grep '"kind":"conflict"' "$3" && break; sleep 0.1; done
                    """, yonder.mount.string, yonder.source.string, yonder.directory["events"].string,
                    Installation.program)
                #expect(outcome.output.contains(#""kind":"conflict""#), "\(outcome.output) \(outcome.errors)")
                #expect(outcome.output.contains("/letter (conflicted copy of"), "\(outcome.output)")
            }
        }
    }
}
