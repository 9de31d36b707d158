import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// A file with several hard links is written in place, because a replacement would separate one name from the others.
///
/// The new content is written to the disk under a hidden name first. Then a write lease keeps other processes from opening
/// the file until all of it is written. A record in the store lets the next start complete an interrupted write.
extension Upload {
    /// - Parameters:
    ///   - path: the names from the root down to the directory.
    ///   - finish: called with the new content in place, before other processes can open the file.
    /// - Returns: false if the file cannot be written in place and is unchanged: another process has it open, it has changed,
    ///   or its file system has no leases.
    /// - Throws: `CancellationError` if the upload was given up; the errors of the store and of system calls.
    func writeInPlace(
        _ name: String, expecting status: FileStatus, path: [String], _ folder: Folder,
        _ cancellation: BlockingCalls.Cancellation,
        finish: () throws -> Void
    ) throws -> Bool {
        guard let target = try? directory.openForWriting(named: name) else { return false }
        defer { try? target.close() }
        let size = try FileStatus(of: file).size
        guard size <= Self.mostInPlace, try takeLease(of: target, cancellation) else { return false }
        defer { target.giveUpLease() }
        guard try FileStatus(of: target).isUnchanged(from: status) else { return false }
        let copy = try hide()
        try directory.synchronize(asDirectory: true)
        let edit = InPlaceEdit(
            directory: path, name: name, file: folder.items.file(status), copy: copy,
            begun: Int64(Date().timeIntervalSince1970))
        folder.edits.withLock { _ = $0.insert(edit.key) }
        defer { folder.edits.withLock { _ = $0.remove(edit.key) } }
        let store = folder.manager.store
        try store.put(edit, at: edit.key, in: InPlaceEdit.namespace, durability: .synced)
        do {
            // The steps before may have taken long, and a lease ends after a while.
            try cancellation.check()
            guard try FileStatus(of: target).isUnchanged(from: status) else {
                try store.remove(edit.key, in: InPlaceEdit.namespace)
                return false
            }
            try target.allocate(for: size, status)
        } catch {
            // Nothing was written.
            try? store.remove(edit.key, in: InPlaceEdit.namespace)
            throw error
        }
        do {
            try target.takeContent(of: file, size: size)
        } catch {
            // The copy stays until it can be finished.
            leaveHidden()
            throw error
        }
        try finish()
        try store.remove(edit.key, in: InPlaceEdit.namespace)
        return true
    }

    /// Waits for a process that has the file open only briefly, such as an indexer.
    private func takeLease(of target: FileDescriptor, _ cancellation: BlockingCalls.Cancellation) throws -> Bool {
        for _ in 0..<10 {
            do throws(Errno) {
                try target.takeWriteLease()
                return true
            } catch {
                guard error == .resourceTemporarilyUnavailable else { return false }
            }
            try cancellation.check()
            Thread.sleep(forTimeInterval: 0.02)
        }
        return false
    }

    /// The maximum size in bytes: a process that opens the file waits until the write has ended, and the kernel breaks the
    /// lease after 45 seconds (`/proc/sys/fs/lease-break-time`).
    private static let mostInPlace: Int64 = 1 << 30
}

/// A file that is being written in place.
struct InPlaceEdit: Codable, Sendable {
    /// The names from the root down to its directory.
    var directory: [String]
    var name: String
    /// As ``FolderItems/file(_:)``.
    var file: String
    /// The hidden name of the complete new content.
    var copy: String
    /// Seconds since 1970.
    var begun: Int64

    static let namespace = ProviderStoreNamespace<InPlaceEdit>("folder.edits")
    var key: ProviderStoreKey { ProviderStoreKey(copy) }
}

extension Folder {
    /// Completes interrupted writes. A file that was changed by others since stays unchanged: its new content is still
    /// pending.
    func finishWritingInPlace() {
        // The records stay until the domain is mounted with write access.
        if manager.domain.isReadOnly { return }
        let found: [(key: ProviderStoreKey, record: InPlaceEdit)]
        do {
            found = try manager.store.list(in: InPlaceEdit.namespace) { [manager] error in manager.report("\(error)") }
        } catch {
            return manager.report("\(error)")
        }
        for (key, edit) in found where !edits.withLock({ $0.contains(key) }) {
            do {
                try finish(edit)
                try manager.store.remove(key, in: InPlaceEdit.namespace)
            } catch {
                manager.report(
                    "'\(edit.name)' on the source is partly written, and could not be completed yet: \(error)")
            }
        }
    }

    private func finish(_ edit: InPlaceEdit) throws {
        var directory = try openRoot()
        defer { try? directory.close() }
        do {
            var parent = ItemIdentifier.rootContainer
            for name in edit.directory {
                let (next, status) = try openDirectory(named: name, in: directory, parent)
                try? directory.close()
                directory = next
                parent = ItemIdentifier(items.file(status))
            }
            let copy = try directory.openFile(named: edit.copy)
            defer { try? copy.close() }
            let target = try directory.openForWriting(named: edit.name)
            defer { try? target.close() }
            let status = try FileStatus(of: target)
            if items.file(status) == edit.file, status.modified.seconds <= edit.begun + Self.secondsOfWriting {
                let wanted = try FileStatus(of: copy)
                try target.takeContent(of: copy, size: wanted.size)
                // With its date it is recognized as what was sent.
                try target.setModified(wanted.modified)
            }
            try? directory.unlink(named: edit.copy)
        } catch Errno.noSuchFileOrDirectory {
            // The file has been removed or replaced, or the copy was never complete.
            try? directory.unlink(named: edit.copy)
        }
    }

    /// A later change of the file is by another process.
    private static let secondsOfWriting: Int64 = 60
}

extension FileDescriptor {
    /// Allocates the space of a longer content, so that a full disk is known before the first write.
    ///
    /// - Throws: what the system call says; the file is as it was then.
    fileprivate func allocate(for size: Int64, _ status: FileStatus) throws(Errno) {
        guard size > status.size else { return }
        do throws(Errno) {
            try allocate(mode: Self.keepingSize, offset: status.size, length: size - status.size)
        } catch {
            // A part may have been allocated, and the time set.
            if (try? FileStatus(of: self))?.size == status.size {
                try? setLength(status.size)
                try? setModified(status.modified)
            }
            throw error
        }
    }

    /// Replaces this file's content by that of another, durably.
    fileprivate func takeContent(of other: FileDescriptor, size: Int64) throws {
        var offset: Int64 = 0
        while offset < size {
            let done = try copy(from: other, at: offset, to: offset, count: min(16 << 20, size - offset))
            guard done > 0 else { throw Errno.ioError }
            offset += done
        }
        try setLength(size)
        try synchronize()
    }
}
