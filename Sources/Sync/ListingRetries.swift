import FileProvider
import Replica

/// Asks again, by itself, for listings that failed because of something that passes: whoever comes back finds them done.
///
/// What the person has to see to is not asked for again until somebody triggers it: credentials, a remote that is away, what
/// the remote will never do, nonsense that it answered.
actor ListingRetries {
    private let replica: Replica
    private let list: @Sendable (InodeNumber) async throws(FileProviderError) -> Void
    private var waiting: [InodeNumber: Task<Void, Never>] = [:]
    private var isStopped = false

    private static let first = Duration.seconds(2)
    private static let longest = Duration.seconds(120)
    /// So many directories are remembered; those beyond are asked for when somebody lists them again.
    private static let mostDirectories = 256

    /// - Parameter list: lists a directory in the background.
    init(replica: Replica, list: @escaping @Sendable (InodeNumber) async throws(FileProviderError) -> Void) {
        self.replica = replica
        self.list = list
    }

    /// A listing that somebody asked for has failed.
    func failed(_ number: InodeNumber, _ error: FileProviderError) {
        guard Self.passes(error), !isStopped, waiting[number] == nil, waiting.count < Self.mostDirectories else {
            return
        }
        schedule(number, attempts: 0)
    }

    /// What is at or below a directory is not asked for again: its listings are evicted.
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

    /// Whether a failure passes by itself, so that the same call is worth making again.
    static func passes(_ error: FileProviderError) -> Bool {
        error.code.reaction == .retry && error.code != .malformedResponse
    }

    /// How long to wait before the call is made again that has failed so many times since the first.
    static func pause(after attempts: Int) -> Duration { min(longest, first * (1 << min(max(attempts, 0), 10))) }

    private func schedule(_ number: InodeNumber, attempts: Int) {
        let pause = Self.pause(after: attempts)
        waiting[number] = Task {
            try? await Task.sleep(for: pause)
            guard !Task.isCancelled else { return }
            await self.retry(number, attempts: attempts + 1)
        }
    }

    private func retry(_ number: InodeNumber, attempts: Int) async {
        guard !Task.isCancelled else { return }
        let isWanted = (try? replica.database.inode(number))?.content == .dataless
        var failure: FileProviderError?
        if isWanted {
            do throws(FileProviderError) { try await list(number) } catch { failure = error }
        }
        // Who was cancelled has been forgotten, and another may wait in its place.
        guard !Task.isCancelled else { return }
        guard let failure, Self.passes(failure), !isStopped else {
            waiting[number] = nil
            return
        }
        schedule(number, attempts: attempts)
    }
}
