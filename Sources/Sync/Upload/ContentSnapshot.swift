import FileProvider
import Replica
import Syscalls
import SystemPackage

/// The content of one generation of a file, open for sending: when the file is written meanwhile, what was sent is not
/// confirmed.
struct ContentSnapshot: Sendable {
    /// The file was written while it was sent: it will be sent again.
    struct Written: Error {}

    let source: ContentSource
    let stamp: Int64
    let size: Int64

    /// Opens a file's content. All that was written up to now is put on the disk first: from then on the kernel notices
    /// every write, through a mapping, too.
    ///
    /// - Parameters:
    ///   - growing: what was sent of it while it was being written.
    ///   - progress: told how many bytes more were taken.
    static func open(
        _ number: InodeNumber, in replica: Replica, growing: GrowingContent? = nil,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws -> ContentSnapshot {
        let descriptor = try replica.openContent(of: number)
        do {
            try descriptor.synchronize()
            var status = try replica.contentStatus(of: number)
            // A change time that was given just now may be given again to the next write.
            while status.stamp == Replica.unknownStamp {
                try await Task.sleep(for: .milliseconds(20))
                status = try replica.contentStatus(of: number)
            }
            try waitForWrite(to: descriptor)
            let (stamp, size) = (status.stamp, status.size)
            // The kernel writes content files by itself, and its own limit is higher.
            guard size <= FileProviderItem.maximumDocumentSize else {
                throw FileProviderError.posix(.fileTooLarge, "a file of \(size) bytes cannot be sent")
            }
            let settled = try replica.contentStatus(of: number)
            guard settled.stamp == stamp, settled.size == size else { throw Written() }
            let source = ContentSource(
                descriptor: descriptor, size: size, growing: growing,
                confirm: {
                    let now = try replica.contentStatus(of: number)
                    guard now.stamp == stamp, now.size == size else { throw Written() }
                }, progress: progress)
            return ContentSnapshot(source: source, stamp: stamp, size: size)
        } catch {
            try? descriptor.close()
            throw error
        }
    }

    /// A write gives the file its change time when it begins: one that is under way could not be told from one that
    /// has ended. Looking for holes, or reading, waits for it, because both take the file's lock.
    private static func waitForWrite(to descriptor: FileDescriptor) throws {
        _ = try? descriptor.seek(to: .hole, from: 0)
        try descriptor.seek(offset: 0, from: .start)
        _ = try descriptor.readBytes(at: 0, count: 1)
    }

    func close() {
        try? source.descriptor.close()
    }
}
