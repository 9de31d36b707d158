import Foundation
import Syscalls
import SystemPackage

/// Writes a file in place, and recognizes one that is partly written.
extension FileDescriptor {
    /// Takes a write lease. Waits for a process that has the file open only briefly, such as an indexer.
    ///
    /// - Throws: EAGAIN if a process has it open; what `check` throws.
    func takeLease(checking check: () throws -> Void) throws {
        for _ in 0..<10 {
            do throws(Errno) {
                return try takeWriteLease()
            } catch {
                guard error == .resourceTemporarilyUnavailable else { throw error }
            }
            try check()
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw Errno.resourceTemporarilyUnavailable
    }

    /// Whether this file can be what an interrupted ``takeContent(of:size:)`` has left. Another program that wrote to it since has
    /// most likely made it shorter, or appended to it.
    ///
    /// - Parameters:
    ///   - size: that of this file now.
    ///   - wanted: that of the content.
    ///   - old: that of this file before.
    func isPartlyWritten(
        from content: FileDescriptor, _ size: Int64, of wanted: Int64, over old: Int64
    ) throws -> Bool {
        guard size == wanted || size == old || size > old && size < wanted else { return false }
        var offset = old
        while offset < size {
            let count = Int(min(1 << 20, size - offset))
            let (there, sent) = (
                try readBytes(at: offset, count: count), try content.readBytes(at: offset, count: count)
            )
            // Bytes that have not reached the disk are zeros after a power failure.
            guard there.count == sent.count, zip(there, sent).allSatisfy({ $0 == $1 || $0 == 0 }) else { return false }
            offset += Int64(count)
        }
        return true
    }

    /// Allocates the space of a longer content, so that a full disk is known before the first write. Does nothing on a file system that
    /// cannot allocate.
    ///
    /// - Throws: what the system call says; the file is as it was then.
    func allocate(for size: Int64, _ status: FileStatus) throws(Errno) {
        guard size > status.size else { return }
        do throws(Errno) {
            try allocate(mode: Self.keepingSize, offset: status.size, length: size - status.size)
        } catch {
            // EOPNOTSUPP, and ENOSYS of some programs of FUSE.
            if error == .notSupported || error == .noFunction { return }
            // A part may have been allocated, and the time set.
            if (try? FileStatus(of: self))?.size == status.size {
                try? setLength(status.size)
                try? setModified(status.modified)
            }
            throw error
        }
    }

    /// Replaces this file's content by that of another, durably, under a lease.
    ///
    /// - Parameter prepare: called before each part is written.
    func takeContent(of other: FileDescriptor, size: Int64, prepare: () throws -> Void) throws {
        var offset: Int64 = 0
        while offset < size {
            try prepare()
            let done = try copy(from: other, at: offset, to: offset, count: min(16 << 20, size - offset))
            guard done > 0 else { throw Errno.ioError }
            offset += done
        }
        try prepare()
        try setLength(size)
        try synchronize()
    }

    /// Replaces this file's content by that of another, durably, where there may be no lease. Each part reaches the disk before the
    /// next one is written: most of the time passes there, and what another program writes meanwhile changes the date.
    ///
    /// - Parameters:
    ///   - found: the status of this file for which this was decided.
    ///   - synchronize: only tests need another one.
    /// - Returns: false if another program has written to this file since. Nothing is written after that was noticed.
    func takeContent(
        of other: FileDescriptor, size: Int64, expecting found: FileStatus,
        synchronize: (FileDescriptor) throws -> Void = { try $0.synchronize() }
    ) throws -> Bool {
        var left = found
        var offset: Int64 = 0
        while offset < size {
            guard try FileStatus(of: self).isUnchanged(from: left) else { return false }
            let done = try copy(from: other, at: offset, to: offset, count: min(16 << 20, size - offset))
            guard done > 0 else { throw Errno.ioError }
            offset += done
            let before = left.size
            left = try FileStatus(of: self)
            // Else another program has made it shorter, or appended to it.
            guard left.size == max(before, offset) else { return false }
            guard try isSynchronized(by: synchronize, leaving: left) else { return false }
        }
        guard try FileStatus(of: self).isUnchanged(from: left) else { return false }
        if left.size != size {
            try setLength(size)
            left = try FileStatus(of: self)
            guard try isSynchronized(by: synchronize, leaving: left) else { return false }
        }
        return try left.size == size && FileStatus(of: self).isUnchanged(from: left)
    }

    /// - Returns: false if that failed, and another program has written to this file meanwhile. What it wrote must not count as left by
    ///   the failure.
    private func isSynchronized(
        by synchronize: (FileDescriptor) throws -> Void, leaving left: FileStatus
    ) throws -> Bool {
        do {
            try synchronize(self)
        } catch {
            guard try FileStatus(of: self).isUnchanged(from: left) else { return false }
            throw error
        }
        return true
    }
}
