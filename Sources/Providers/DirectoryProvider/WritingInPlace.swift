import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// A file with several hard links is written in place, so that all its names have the new content: another file in the
/// place of one name would take that name away from the others.
///
/// The new content is on the disk under a hidden name first. Then a write lease keeps everybody else from opening the
/// file until all of it is written. A record in the store tells the next start what a crash left half done.
extension Upload {
    /// - Parameters:
    ///   - path: the names from the root down to the directory.
    ///   - finish: called while nobody else can open the file, when it has the new content.
    /// - Returns: false when the file cannot be written in place and is as it was: somebody has it open, it has changed, or
    ///   its file system has no leases.
    func writeInPlace(
        _ name: String, expecting status: FileStatus, path: [String], _ folder: Folder, _ wish: BlockingCalls.Wish,
        finish: () throws -> Void
    ) throws -> Bool {
        guard let target = try? directory.openForWriting(named: name) else { return false }
        defer { try? target.close() }
        let size = try FileStatus(of: file).size
        guard size <= Self.mostInPlace, try takeLease(of: target, wish) else { return false }
        defer { target.giveUpLease() }
        guard try FileStatus(of: target).isUnchanged(from: status) else { return false }
        // What there is no room for is not begun.
        if size > status.size { try target.allocate(mode: 0, offset: status.size, length: size - status.size) }
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
            try target.takeContent(of: file, size: size)
        } catch {
            // The copy stays until it can be finished.
            leaveHidden()
            throw error
        }
        try store.remove(edit.key, in: InPlaceEdit.namespace)
        try finish()
        return true
    }

    /// A process that has the file open for a moment only, such as an indexer, is waited for.
    private func takeLease(of target: FileDescriptor, _ wish: BlockingCalls.Wish) throws -> Bool {
        for _ in 0..<10 {
            do throws(Errno) {
                try target.takeWriteLease()
                return true
            } catch {
                guard error == .resourceTemporarilyUnavailable else { return false }
            }
            try wish.check()
            Thread.sleep(forTimeInterval: 0.02)
        }
        return false
    }

    /// Others must not have to wait for longer than the kernel lets them: 45 seconds.
    private static let mostInPlace: Int64 = 1 << 30
}

/// A file that is being written in place.
struct InPlaceEdit: Codable, Sendable {
    /// The names from the root down to its directory.
    var directory: [String]
    var name: String
    /// As in its identifier.
    var file: String
    /// The hidden name of the complete new content.
    var copy: String
    /// Seconds since 1970.
    var begun: Int64

    static let namespace = ProviderStoreNamespace<InPlaceEdit>("folder.edits")
    var key: ProviderStoreKey { ProviderStoreKey(copy) }
}

extension Folder {
    /// Finishes what a crash or an error broke off. A file that somebody else has changed since stays as it is: the
    /// content that was to be written is still pending.
    func finishWritingInPlace() {
        // The records stay for when the domain may change its source again.
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
                manager.report("'\(edit.name)' on the source is half written, and could not be completed yet: \(error)")
            }
        }
    }

    private func finish(_ edit: InPlaceEdit) throws {
        var directory = try openRoot()
        defer { try? directory.close() }
        do {
            for name in edit.directory {
                let next = try directory.openDirectory(named: name)
                try? directory.close()
                directory = next
            }
            let copy = try directory.openFile(named: edit.copy)
            defer { try? copy.close() }
            let target = try directory.openForWriting(named: edit.name)
            defer { try? target.close() }
            let status = try FileStatus(of: target)
            if items.file(status) == edit.file, status.modified.seconds <= edit.begun + Self.secondsOfWriting {
                try target.takeContent(of: copy, size: FileStatus(of: copy).size)
            }
            try? directory.unlink(named: edit.copy)
        } catch Errno.noSuchFileOrDirectory {
            // The file has been removed or replaced, or the copy was never complete.
            try? directory.unlink(named: edit.copy)
        }
    }

    /// A later change of the file is not ours.
    private static let secondsOfWriting: Int64 = 60
}

extension FileDescriptor {
    /// Makes this file's content that of another, and durable.
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
