import FileProvider
import FileProviderPaths

/// What answers lookups.
protocol RcloneDirectoryReader: Sendable {
    /// Looks a file up; nil if there is none.
    func lookUpFile(_ path: RemotePath) async throws -> RemoteEntry?
    /// Lists a directory; nothing if it is missing.
    func list(_ directory: RemotePath) async throws -> [RemoteEntry]
}

/// Looks files up. Those of one directory that are looked up at the same time share one listing where that is faster: many
/// backends answer no more than a hundred requests a second.
actor RcloneLookups {
    private struct Waiter {
        var path: RemotePath
        let answer = OneShot<RemoteEntry?>()
    }

    /// The number of entries of directories, when they were last listed.
    private var sizes: [RemotePath: Int] = [:]
    /// The lookups that wait for the present one in their directory to end.
    private var waiting: [RemotePath: [Waiter]] = [:]
    /// How long the last ones took.
    private var lookupTook = Duration.zero
    private var listingTook = Duration.zero

    /// The largest directory that is listed for lookups.
    private static let largestDirectory = 1024
    private static let mostSizes = 10_000

    func wasListed(_ directory: RemotePath, count: Int) {
        if sizes.count >= Self.mostSizes { sizes = [:] }
        sizes[directory] = count
    }

    /// The number of lookups that wait for another one to end.
    var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    /// Returns a file as it is after the call; nil if there is none.
    ///
    /// - Throws: what rclone answers.
    func file(at path: RemotePath, from reader: any RcloneDirectoryReader) async throws -> RemoteEntry? {
        let directory = path.parent
        guard let size = sizes[directory], size <= Self.largestDirectory else {
            return try await reader.lookUpFile(path)
        }
        // Only a listing that begins from now on has the file as it is now.
        guard waiting[directory] == nil else {
            let waiter = Waiter(path: path)
            waiting[directory]?.append(waiter)
            return try await waiter.answer.value { waiter.answer.give(.failure(CancellationError())) }
        }
        waiting[directory] = []
        defer { answerWaiting(in: directory, from: reader) }
        let start = ContinuousClock.now
        defer { lookupTook = .now - start }
        return try await reader.lookUpFile(path)
    }

    private func answerWaiting(in directory: RemotePath, from reader: any RcloneDirectoryReader) {
        guard let waiters = waiting[directory], !waiters.isEmpty else {
            waiting[directory] = nil
            return
        }
        waiting[directory] = []
        // Lookups are sent side by side, and a listing is one request or several that follow each other.
        let isListed = waiters.count > 1 && listingTook <= lookupTook * waiters.count / 2
        Task {
            if isListed {
                await answer(waiters, byListing: directory, from: reader)
            } else {
                await answerSingly(waiters, from: reader)
            }
            answerWaiting(in: directory, from: reader)
        }
    }

    private func answer(
        _ waiters: [Waiter], byListing directory: RemotePath, from reader: any RcloneDirectoryReader
    ) async {
        do {
            let start = ContinuousClock.now
            let entries = try await reader.list(directory)
            listingTook = .now - start
            wasListed(directory, count: entries.count)
            let byName = Dictionary(entries.map { (RemotePath([$0.name]), $0) }) { first, _ in first }
            var missing: [Waiter] = []
            for waiter in waiters {
                if let entry = byName[RemotePath([waiter.path.name ?? ""])] {
                    waiter.answer.give(.success(entry.kind == .file ? entry : nil))
                } else {
                    missing.append(waiter)
                }
            }
            // Some backends take names for the same that differ in case or in the form of a letter.
            await answerSingly(missing, from: reader)
        } catch {
            for waiter in waiters { waiter.answer.give(.failure(error)) }
        }
    }

    private func answerSingly(_ waiters: [Waiter], from reader: any RcloneDirectoryReader) async {
        let start = ContinuousClock.now
        await withTaskGroup { group in
            for waiter in waiters {
                group.addTask {
                    do { waiter.answer.give(.success(try await reader.lookUpFile(waiter.path))) } catch {
                        waiter.answer.give(.failure(error))
                    }
                }
            }
        }
        lookupTook = .now - start
    }
}
