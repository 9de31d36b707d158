import FileProvider
import Replica

/// Materializes everything below an item, several files at once.
struct RecursiveDownload: SyncPart {
    let context: SyncContext
    let listings: Listings
    let downloads: Downloads
    var progress: @Sendable (InodeNumber, Int64) -> Void = { _, _ in }

    private static let filesAtOnce = 8

    func run(
        _ number: InodeNumber, request: FileProviderRequest
    ) async throws -> [(number: InodeNumber, error: FileProviderError)] {
        guard let inode = try replica.database.inode(number) else {
            return [(number, FileProviderError(.noSuchItem))]
        }
        switch inode.kind {
        case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket: return []
        case .file:
            // As below a directory: the remote may not have it yet.
            if inode.content == .materialized { return [] }
            return try await files([number], request: request)
        case .directory: break
        }
        var failures: [(number: InodeNumber, error: FileProviderError)] = []
        var directories = [number]
        while let directory = directories.popLast() {
            try Task.checkCancellation()
            do throws(FileProviderError) {
                try await listings.list(directory, beyond: nil, request: request)
            } catch {
                failures.append((directory, error))
                continue
            }
            progress(directory, 0)
            failures += try await files(replica.database.incompleteFiles(in: directory), request: request)
            directories += try replica.database.directories(in: directory).reversed()
        }
        return failures
    }

    private func files(
        _ numbers: [InodeNumber], request: FileProviderRequest
    ) async throws -> [(number: InodeNumber, error: FileProviderError)] {
        try await withThrowingTaskGroup(of: (InodeNumber, FileProviderError)?.self) { group in
            var failures: [(number: InodeNumber, error: FileProviderError)] = []
            var remaining = numbers.makeIterator()
            func addNext() {
                guard let number = remaining.next() else { return }
                group.addTask {
                    do throws(FileProviderError) {
                        try await downloads.provide(number, version: nil, range: nil, request: request)
                        await downloads.settle(number)
                        progress(number, (try? replica.database.inode(number)?.size) ?? 0)
                        return nil
                    } catch {
                        return (number, error)
                    }
                }
            }
            for _ in 0..<Self.filesAtOnce { addNext() }
            while let result = try await group.next() {
                if let result { failures.append((result.0, result.1)) }
                try Task.checkCancellation()
                addNext()
            }
            return failures
        }
    }
}
