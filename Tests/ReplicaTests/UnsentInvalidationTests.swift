import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// Invalidations that a crash kept from the kernel.
@Suite("unsent invalidations") struct UnsentInvalidationTests {
    @Test("TAKEOVER-6: what the kernel has to forget is recorded with the change, until the kernel was told")
    func outliveTheProcess() async throws {
        let fixture = try ReplicaFixture()
        let before = try fixture.replica()
        try await before.list([.file("a"), .file("b")], open: fixture.open)
        #expect(try before.database.unsentInvalidations().invalidations.isEmpty)
        let renamed = try await before.change([.file("c", id: "a")], open: fixture.open)
        let removed = try await before.change([], deleted: ["b"], open: fixture.open)
        #expect(renamed.lastInvalidation > 0 && removed.lastInvalidation > renamed.lastInvalidation)

        // A daemon that was killed closes nothing.
        let after = try fixture.replica()
        let unsent = try after.database.unsentInvalidations()
        #expect(unsent.invalidations == renamed.invalidations + removed.invalidations)
        #expect(unsent.lastInvalidation == removed.lastInvalidation)
        try await after.database.forgetInvalidations(upTo: renamed.lastInvalidation)
        #expect(try after.database.unsentInvalidations().invalidations == removed.invalidations)
        try after.database.forgetInvalidations()
        #expect(try after.database.unsentInvalidations().invalidations.isEmpty)
    }
}
