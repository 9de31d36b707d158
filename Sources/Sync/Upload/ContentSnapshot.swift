import FileProvider
import Replica
import Syscalls
import SystemPackage

/// The content of a file at one moment, open for sending. It is the content file itself, which is confirmed at the end of
/// the upload, or a copy of it where programs go on writing.
struct ContentSnapshot: Sendable {
    /// The file was written while it was sent: it will be sent again.
    struct Written: Error {}

    let source: ContentSource
    /// The stamp that no other content of the file has; nil when newer bytes may have the same one, so that the file has to
    /// be sent again after it was left alone.
    let stamp: Int64?
    let size: Int64
    let modifiedAt: FileTimestamp

    /// A file that was written so recently is likely to be written again while it is sent.
    private static let restless = Duration.seconds(5)
    private static let mostCopies = 20
    /// How long a store through a mapping may take from the change time to the bytes. The page fault gives the file its
    /// change time first (`file_update_time`), and then waits for the journal, which is busy with our fsync, and for the
    /// processor: 86 ms were measured. No system call waits for a fault of another process.
    private static let longestFault = Duration.seconds(1)

    /// Bytes that were written are lost, after a power cut or by damage: what is left must not take the place of what the
    /// remote has. ``Replica/finishRecovery()`` and `yonder check` find it, too.
    ///
    /// - Throws: `cannotSynchronize`.
    private static func refuseTruncated(_ number: InodeNumber, in replica: Replica) async throws {
        // A truncation is made before it is recorded.
        for pause in [Duration.milliseconds(100), .zero] {
            guard let inode = try replica.database.inode(number), inode.contentStamp == nil else { return }
            let length = try replica.contentStatus(of: number).size
            guard length < inode.size else { return }
            guard pause == .zero else {
                try await Task.sleep(for: pause)
                continue
            }
            throw FileProviderError(
                .cannotSynchronize,
                "only \(length) of its \(inode.size) bytes are on this machine's disk; 'yonder check --repair' says more"
            )
        }
    }

    /// Opens a file's content. The stamp is looked up first, and all that was written is put on the disk after that: from
    /// then on the kernel gives the file another change time for every write, through a mapping, too. (A page of a mapping
    /// that was written once and is not on the disk yet can be written again unnoticed.) Faults that were under way when the
    /// stamp was looked up make their pages dirty without another change time: if programs may have mapped the file, its
    /// pages are written to the disk once more after ``longestFault``. A copy does not wait for that, and has no stamp.
    ///
    /// - Parameters:
    ///   - growing: what was sent of it while it was being written.
    ///   - isBeingWritten: whether a program goes on writing it, so that it is never left alone. When it was written just
    ///     now, what is sent is a copy, so that writing can go on meanwhile.
    ///   - progress: told how many bytes more were taken.
    ///   - pace: waits until they may be sent.
    static func open(
        _ number: InodeNumber, in replica: Replica, growing: GrowingContent? = nil, isBeingWritten: Bool = false,
        progress: @escaping @Sendable (Int64) -> Void,
        pace: @escaping @Sendable (Int64) async throws -> Void = { _ in }
    ) async throws -> ContentSnapshot {
        let descriptor = try replica.openContent(of: number)
        do {
            if isBeingWritten, let copy = try await copy(of: number, in: replica, descriptor) {
                try? descriptor.close()
                let source = ContentSource(
                    descriptor: copy.descriptor, size: copy.status.size, growing: growing, confirm: {},
                    progress: progress,
                    pace: pace)
                return ContentSnapshot(
                    source: source, stamp: nil, size: copy.status.size, modifiedAt: copy.status.modifiedAt)
            }
            try await refuseTruncated(number, in: replica)
            var status = try replica.contentStatus(of: number)
            // A change time that was given just now may be given again to the next write.
            while status.stamp == Replica.unknownStamp {
                try await Task.sleep(for: .milliseconds(20))
                status = try replica.contentStatus(of: number)
            }
            try descriptor.synchronize()
            if try replica.database.isOpenForWriting(number) {
                try await Task.sleep(for: longestFault)
                try descriptor.synchronize()
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
                }, progress: progress, pace: pace)
            return ContentSnapshot(source: source, stamp: stamp, size: size, modifiedAt: settled.modifiedAt)
        } catch {
            try? descriptor.close()
            throw error
        }
    }

    /// Copies a file that is being written, between two writes, to a file without a name. File systems that can (Btrfs, XFS)
    /// share the blocks; on others a large file is copied only when that leaves enough of the disk free.
    ///
    /// - Returns: nil for a file that was left alone for a while: it is sent as it is.
    /// - Throws: ``Written`` when it is written too often to be copied; `posix` with ENOSPC when the disk has no space.
    private static func copy(
        of number: InodeNumber, in replica: Replica, _ descriptor: FileDescriptor
    ) async throws -> (descriptor: FileDescriptor, status: ContentStatus)? {
        for _ in 0..<mostCopies {
            let status = try replica.contentStatus(of: number)
            guard status.changedAt.advanced(by: restless) > FileTimestamp.now else { return nil }
            if status.size > UploadDelays.smallFile,
                let shortage = FreeSpace(replica.directory)?.shortage(of: status.allocated), shortage > 0
            {
                throw noSpace(for: status.size)
            }
            guard status.stamp != Replica.unknownStamp else {
                try await Task.sleep(for: .milliseconds(5))
                continue
            }
            try descriptor.synchronize()
            try waitForWrite(to: descriptor)
            let copy = try replica.makeScratchFile()
            do {
                let copied = try copy.copy(from: descriptor, at: 0, to: 0, count: status.size)
                let now = try replica.contentStatus(of: number)
                if copied == status.size, now.stamp == status.stamp, now.size == status.size {
                    return (copy, now)
                }
                try copy.close()
            } catch {
                try? copy.close()
                if error as? Errno == .noSpace { throw noSpace(for: status.size) }
                throw Written()
            }
        }
        throw Written()
    }

    private static func noSpace(for size: Int64) -> FileProviderError {
        .posix(
            .noSpace,
            "programs go on writing the file, and the disk has no space for a copy of its \(size) bytes to send: it is "
                + "sent when it was left alone for five seconds or is closed")
    }

    /// A write gives the file its change time when it begins: one that is under way could not be told from one that
    /// has ended. Looking for holes, or reading, waits for it, because both take the file's lock.
    private static func waitForWrite(to descriptor: FileDescriptor) throws {
        _ = try? descriptor.seek(to: .hole, from: 0)
        try descriptor.seek(offset: 0, from: .start)
        _ = try descriptor.readBytes(at: 0, count: 1)
    }
}
