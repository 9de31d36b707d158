import FileProvider
import FileProviderTesting
import SystemPackage
import TestSupport
import Testing

@testable import FileProviderPaths

/// A directory in which one file after the other is written.
@Suite struct BusyDirectoryTests {
    @Test("PATH-14: a listing of a directory waits for the changes in flight, and for none that begin later")
    func listingEnds() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "memory"), stateDirectory: scratch.path)
        let paths = PathMap(manager: manager, ledger: OperationLedger())
        // Two writers, each of which begins before the other ends.
        let writers = (0..<2).map { writer in
            Task {
                var number = 0
                while !Task.isCancelled {
                    number += 1
                    let place = PathMap.Place(directory: .rootContainer, name: "\(writer).\(number)")
                    try? await paths.changing([place]) {
                        try? await Task.sleep(for: .milliseconds(writer == 0 ? 30 : 50))
                    }
                }
            }
        }
        #expect(await eventually { paths.now > 4 })
        let start = ContinuousClock.now
        let moment = paths.now
        let changed = try await paths.changed(in: .rootContainer, since: moment)
        for writer in writers { writer.cancel() }
        // The names whose changes were in flight are known to have changed.
        #expect(!changed.isEmpty)
        #expect(ContinuousClock.now - start < .seconds(10))
    }
}
