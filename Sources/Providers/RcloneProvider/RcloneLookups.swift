import FileProvider
import FileProviderPaths
import Foundation

/// What answers lookups.
protocol RcloneDirectoryReader: Sendable {
    /// Looks one item up; nil if there is none.
    func lookUp(_ query: RcloneLookups.Query) async throws -> RemoteEntry?
    /// Lists a directory; nothing if it is missing.
    func list(_ directory: RemotePath) async throws -> [RemoteEntry]
}

/// Looks items up. Items of one directory that are looked up at the same time share one listing, because many backends answer no
/// more than a hundred requests a second.
actor RcloneLookups {
    /// What is looked up.
    struct Query: Sendable {
        var path: RemotePath
        /// A directory of this name does not count, which many backends find out by listing the parent.
        var isFile = false
    }

    private struct Waiter {
        var query: Query
        let answer = OneShot<RemoteEntry?>()
    }

    /// The number of entries of directories, when they were last listed.
    private var sizes: [RemotePath: Int] = [:]
    /// The lookups that wait for the present one in their directory to end.
    private var waiting: [RemotePath: [Waiter]] = [:]

    /// So many entries may be listed for each item that is looked up.
    private static let entriesPerQuery = 64
    /// The largest directory in which a file's lookup waits for another one to end.
    private static let largestShared = 1024
    /// The largest directory that is listed to find one item, which rclone does itself, after a request, for all but files.
    private static let largestListedForOne = 256
    private static let mostSizes = 10_000

    /// A directory was listed.
    func wasListed(_ directory: RemotePath, count: Int) {
        if sizes.count >= Self.mostSizes { sizes = [:] }
        sizes[directory] = count
    }

    /// The number of lookups that wait for another one to end.
    var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    /// Returns an item as it is after the call; nil if there is none.
    ///
    /// - Throws: what rclone answers.
    func entry(_ query: Query, from reader: any RcloneDirectoryReader) async throws -> RemoteEntry? {
        let directory = query.path.parent
        let size = sizes[directory] ?? .max
        guard !query.path.names.isEmpty, !query.isFile || size <= Self.largestShared else {
            return try await reader.lookUp(query)
        }
        // Only a listing that begins from now on has the item as it is now.
        guard waiting[directory] == nil else {
            let waiter = Waiter(query: query)
            waiting[directory]?.append(waiter)
            return try await waiter.answer.value { waiter.answer.give(.failure(CancellationError())) }
        }
        waiting[directory] = []
        defer { answerWaiting(in: directory, from: reader) }
        guard !query.isFile, size <= Self.largestListedForOne else { return try await reader.lookUp(query) }
        let waiter = Waiter(query: query)
        await answer([waiter], byListing: directory, from: reader)
        return try await waiter.answer.value {}
    }

    private func answerWaiting(in directory: RemotePath, from reader: any RcloneDirectoryReader) {
        guard let waiters = waiting[directory], !waiters.isEmpty else {
            waiting[directory] = nil
            return
        }
        waiting[directory] = []
        let size = sizes[directory] ?? .max
        // A name that is missing is searched for in a listing in any case.
        let isListed =
            waiters.count > 1
            && (waiters.contains { !$0.query.isFile } || size <= Self.entriesPerQuery * waiters.count)
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
            let entries = try await reader.list(directory)
            wasListed(directory, count: entries.count)
            let byName = Dictionary(entries.map { (RemotePath([$0.name]), $0) }) { first, _ in first }
            let similar = Set(entries.map { Self.folded($0.name) })
            var unclear: [Waiter] = []
            for waiter in waiters {
                let name = waiter.query.path.name ?? ""
                if let entry = byName[RemotePath([name])] {
                    waiter.answer.give(.success(entry.kind == .file || !waiter.query.isFile ? entry : nil))
                } else if similar.contains(Self.folded(name)) {
                    // Some backends take names for the same that differ in case or in the form of a letter.
                    unclear.append(waiter)
                } else {
                    waiter.answer.give(.success(nil))
                }
            }
            await answerSingly(unclear, from: reader)
        } catch {
            for waiter in waiters { waiter.answer.give(.failure(error)) }
        }
    }

    private func answerSingly(_ waiters: [Waiter], from reader: any RcloneDirectoryReader) async {
        await withTaskGroup { group in
            for waiter in waiters {
                group.addTask {
                    do { waiter.answer.give(.success(try await reader.lookUp(waiter.query))) } catch {
                        waiter.answer.give(.failure(error))
                    }
                }
            }
        }
    }

    private static func folded(_ name: String) -> String {
        name.precomposedStringWithCompatibilityMapping.lowercased()
    }
}
