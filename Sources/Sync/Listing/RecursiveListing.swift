import FileProvider
import Replica

/// Lists a directory and all directories below it that are not listed yet, several at once.
struct RecursiveListing: Sendable {
    let replica: Replica
    let list: @Sendable (InodeNumber) async throws(FileProviderError) -> Void

    private static let atOnce = 8

    /// - Throws: the first failure, but for a directory that the remote does not have any more.
    func run(_ top: InodeNumber) async throws {
        try await withThrowingTaskGroup(of: [InodeNumber].self) { group in
            var waiting = [top]
            var running = 0
            while !waiting.isEmpty || running > 0 {
                while running < Self.atOnce, let directory = waiting.popLast() {
                    running += 1
                    group.addTask { try await subdirectories(of: directory) }
                }
                guard let found = try await group.next() else { return }
                running -= 1
                waiting += found
            }
        }
    }

    private func subdirectories(of directory: InodeNumber) async throws -> [InodeNumber] {
        do throws(FileProviderError) {
            try await list(directory)
        } catch {
            guard error.code == .noSuchItem else { throw error }
            return []
        }
        return try replica.database.directories(in: directory)
    }
}
