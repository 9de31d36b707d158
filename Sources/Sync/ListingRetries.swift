import FileProvider
import Replica

/// Asks again, by itself, for listings that failed because of something that passes: whoever comes back finds them done.
///
/// What the person has to see to is not asked for again until somebody triggers it: credentials, a remote that is away, what
/// the remote will never do, nonsense that it answered.
actor ListingRetries {
    private struct Waiting {
        var attempts: Int
        var task: Task<Void, Never>
    }

    private let replica: Replica
    private let list: @Sendable (InodeNumber) async throws(FileProviderError) -> Void
    private var waiting: [InodeNumber: Waiting] = [:]
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

    func stop() {
        isStopped = true
        for entry in waiting.values { entry.task.cancel() }
        waiting = [:]
    }

    private static func passes(_ error: FileProviderError) -> Bool {
        error.code.reaction == .retry && error.code != .malformedResponse
    }

    private func schedule(_ number: InodeNumber, attempts: Int) {
        let pause = min(Self.longest, Self.first * (1 << min(attempts, 10)))
        let task = Task {
            try? await Task.sleep(for: pause)
            guard !Task.isCancelled else { return }
            await self.retry(number, attempts: attempts + 1)
        }
        waiting[number] = Waiting(attempts: attempts, task: task)
    }

    private func retry(_ number: InodeNumber, attempts: Int) async {
        let isWanted = (try? replica.database.inode(number))?.content == .dataless
        var failure: FileProviderError?
        if isWanted {
            do throws(FileProviderError) { try await list(number) } catch { failure = error }
        }
        guard let failure, Self.passes(failure), !isStopped else {
            waiting[number] = nil
            return
        }
        schedule(number, attempts: attempts)
    }
}
