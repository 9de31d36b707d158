import FileProvider
import Replica

/// Identifiers that are not to be trusted any more.
extension SyncEngine {
    /// Has everything below an item offered to the provider again, with the item itself. Returns when that is recorded;
    /// it goes on by itself, also after a crash, and ends with the provider's `importDidFinish`.
    ///
    /// - Throws: `noSuchItem` for what is not shown here, or waits to be reimported already; `featureUnsupported` where
    ///   the remote cannot be written.
    package func reimport(below number: InodeNumber) async throws {
        try await reimport(below: number, isAsked: false)
    }

    private func reimport(below number: InodeNumber, isAsked: Bool) async throws {
        try await reimports.begin(below: number, isAsked: isAsked)
        // The remote is accepted as it is: what it refused before is tried at once.
        if number == .root { try await commits.commit(changingNames: false) { try $0.answers.retryNow(nil) } }
    }

    /// Begins what the provider has asked for before the domain was mounted. What cannot be reimported is reported, and asked for no
    /// more.
    package func beginAskedReimports() async {
        do {
            var refused: [InodeNumber] = []
            for number in try replica.database.reimports.asked() {
                do {
                    try await reimport(below: number, isAsked: true)
                } catch let error as FileProviderError {
                    guard [.noSuchItem, .featureUnsupported].contains(error.code) else { throw error }
                    refused.append(number)
                    // The item was removed, or another caller has begun it.
                    if error.code == .noSuchItem { continue }
                    warnings.report("the provider has asked for a reimport: \(error.message)")
                }
            }
            if !refused.isEmpty { try await replica.forgetAskedReimports(refused) }
        } catch {
            warnings.report("the reimport that the provider has asked for cannot begin: \(error)", of: .reimport)
        }
    }

    /// Waits until no reimport is under way.
    ///
    /// - Parameter progress: called now and then.
    /// - Throws: while the domain is paused, the reason: the reimport does not go on by itself then.
    package func waitForReimport(progress: @Sendable (ReimportProgress) -> Void) async throws {
        await uploads.setHurried(true)
        defer { Task { await uploads.setHurried(false) } }
        var start = ContinuousClock.now
        while let now = try replica.database.reimports.progress() {
            if let refusal = connection.refusalWhilePaused { throw refusal }
            progress(now)
            // Counting a million items that wait is work, too.
            try await Task.sleep(for: max(.milliseconds(200), (ContinuousClock.now - start) * 50))
            start = .now
        }
    }

    /// Does what a reimport can do without offering anything: for tests that pick every operation.
    package func continueReimport() async {
        await reimports.goOn()
    }
}
