import FileProvider
import Replica

/// Lists directories again whose listing failed with a transient error, so that the next caller finds them listed.
///
/// It does not retry what the user has to resolve first: wrong credentials, an unreachable remote, a refusal, a malformed
/// response.
actor ListingRetries {
    /// Lists a directory in the background.
    typealias Lister = @Sendable (InodeNumber) async throws(FileProviderError) -> Void

    private let replica: Replica
    private var waiting: [InodeNumber: Task<Void, Never>] = [:]
    private var isStopped = false

    /// Failures beyond this many directories are forgotten: the next caller lists those.
    private static let mostDirectories = 256

    init(replica: Replica) {
        self.replica = replica
    }

    /// A listing that a caller asked for has failed.
    func failed(_ number: InodeNumber, _ error: FileProviderError, lister: @escaping Lister) {
        guard Backoff.isTransient(error), !isStopped, waiting[number] == nil, waiting.count < Self.mostDirectories
        else { return }
        schedule(number, attempts: 0, lister)
    }

    /// Directories at or below this one are not listed again: their listings are being evicted.
    func forget(below directory: InodeNumber) {
        for (number, task) in waiting where (try? replica.database.isBelow(number, directory)) != false {
            task.cancel()
            waiting[number] = nil
        }
    }

    func stop() {
        isStopped = true
        for task in waiting.values { task.cancel() }
        waiting = [:]
    }

    private func schedule(_ number: InodeNumber, attempts: Int, _ lister: @escaping Lister) {
        let pause = Backoff.listing.pause(after: attempts)
        waiting[number] = Task {
            try? await Task.sleep(for: pause)
            guard !Task.isCancelled else { return }
            await self.retry(number, attempts: attempts + 1, lister)
        }
    }

    private func retry(_ number: InodeNumber, attempts: Int, _ lister: @escaping Lister) async {
        guard !Task.isCancelled else { return }
        let isWanted = (try? replica.database.inode(number))?.content == .dataless
        var failure: FileProviderError?
        if isWanted {
            do throws(FileProviderError) { try await lister(number) } catch { failure = error }
        }
        // A cancelled retry has been removed, and another may wait in its place.
        guard !Task.isCancelled else { return }
        guard let failure, Backoff.isTransient(failure), !isStopped else {
            waiting[number] = nil
            return
        }
        schedule(number, attempts: attempts, lister)
    }
}
