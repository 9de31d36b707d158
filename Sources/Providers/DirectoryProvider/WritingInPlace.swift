import FileProvider
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
    ///   - now: seconds since 1970; only tests need another clock.
    /// - Returns: false if the file cannot be written in place and is unchanged: another process has it open, it has changed,
    ///   or its file system has no leases.
    /// - Throws: `CancellationError` if the upload was given up; the errors of the store and of system calls.
    func writeInPlace(
        _ name: String, expecting status: FileStatus, path: [String], _ folder: Folder,
        _ cancellation: BlockingCalls.Cancellation,
        finish: () throws -> Void, now: () -> Int64 = { FileTimestamp.now.seconds }
    ) throws -> Bool {
        guard let target = try? directory.openForWriting(named: name) else { return false }
        defer { try? target.close() }
        let size = try FileStatus(of: file).size
        guard size <= Self.mostInPlace else { return false }
        do {
            try target.takeLease(checking: cancellation.check)
        } catch is Errno {
            return false
        }
        defer { target.giveUpLease() }
        guard try FileStatus(of: target).isUnchanged(from: status) else { return false }
        let copy = try hideAsCopy()
        try directory.synchronize(asDirectory: true)
        let edit = InPlaceEdit(
            directory: path, name: name, file: folder.items.file(status), copy: copy,
            begun: now(), size: status.size)
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
            do {
                // A repair with the content of an older write could replace this one.
                try folder.removeEdits(of: edit.file, except: edit.key)
            } catch {
                // To allocate space has set it.
                try? target.setModified(status.modified)
                throw error
            }
        } catch {
            // Nothing was written.
            try? store.remove(edit.key, in: InPlaceEdit.namespace)
            throw error
        }
        do {
            var noted = edit
            // To end the write is better than to stop halfway because the record cannot be renewed.
            try target.takeContent(of: file, size: size) { try? folder.noteWriting(&noted, now: now()) }
            try finish()
            try store.remove(edit.key, in: InPlaceEdit.namespace)
        } catch {
            // The copy stays as long as the record: without it the new content would be reported as removed.
            leaveHidden()
            try? folder.noteFailure(of: edit, target)
            throw error
        }
        return true
    }

    /// The maximum size in bytes: a process that opens the file waits until the write has ended, and the kernel breaks the
    /// lease after 45 seconds (`/proc/sys/fs/lease-break-time`).
    private static let mostInPlace: Int64 = 1 << 30
}

extension Folder {
    /// Completes interrupted writes. A file that was changed by others since stays unchanged: its new content is still
    /// pending.
    ///
    /// - Parameter mostNames: as for ``walk(mostNames:hidden:)``; only tests need another one.
    func finishWritingInPlace(mostNames: Int = FolderIndex.mostNames) {
        // The records stay until the domain is mounted with write access.
        if manager.domain.isReadOnly { return }
        let found: [(key: ProviderStoreKey, record: InPlaceEdit)]
        do {
            found = try manager.store.list(in: InPlaceEdit.namespace) { [manager] error in manager.report("\(error)") }
        } catch {
            return manager.report("\(error)")
        }
        let lost = lostEdits.withLock { $0 }
        for (key, edit) in found where !lost.contains(key) {
            guard edits.withLock({ $0.insert(key).inserted }) else { continue }
            defer { edits.withLock { _ = $0.remove(key) } }
            do {
                // Another call may have completed it since: its copy is gone then, and not lost.
                guard let current = try manager.store.get(key, in: InPlaceEdit.namespace) else { continue }
                try finish(current, mostNames: mostNames)
                editsInUse.withLock { _ = $0.remove(key) }
            } catch {
                let isInUse = error as? Errno == .resourceTemporarilyUnavailable
                editsInUse.withLock { if isInUse { _ = $0.insert(key) } else { _ = $0.remove(key) } }
                manager.report(
                    "'\(edit.name)' on the source is partly written, and could not be completed yet: \(error)")
            }
        }
    }

    private func finish(_ edit: InPlaceEdit, mostNames: Int) throws {
        let known = edit.holder ?? edit.directory
        if try finish(edit, withCopyIn: known, at: edit.directory + [edit.name]) { return }
        // Another program has moved the file or its directory, or given its name to another file.
        var holder = try hasCopy(of: edit, in: known) ? known : nil
        let places = walk(mostNames: mostNames) { name, directory in
            if name.elementsEqual(edit.copy.utf8) { holder = directory }
        }
        if let holder, try hasCopy(of: edit, in: holder) {
            for path in places.paths(of: edit.file) {
                if try finish(edit, withCopyIn: holder, at: path) { return }
            }
        }
        lostEdits.withLock { _ = $0.insert(edit.key) }
        let copy = ((holder ?? known) + [edit.copy]).joined(separator: "/")
        if holder != nil {
            throw FileProviderError(.noSuchItem, "it is not found there; its new content stays in '\(copy)'")
        }
        // Without the record the copy would be removed as a leftover. A file system that is not mounted may have it, too.
        guard places.isComplete, !FolderItems.isOnMount(ItemIdentifier(edit.file)) else {
            throw FileProviderError(
                .noSuchItem,
                "its new content was in '\(copy)', and is not found in the part of the folder that was searched")
        }
        try manager.store.remove(edit.key, in: InPlaceEdit.namespace)
        throw FileProviderError(.noSuchItem, "its new content was removed from the source")
    }

    private func hasCopy(of edit: InPlaceEdit, in path: [String]) throws -> Bool {
        guard let directory = try openDirectory(at: path[...]) else { return false }
        defer { try? directory.close() }
        do throws(Errno) {
            let copy = try directory.openReference(named: edit.copy)
            Self.renew(copy)
            try? copy.close()
            return true
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
            return false
        }
    }

    /// Sets the change time of a copy, so that another domain of the same folder does not remove it as a leftover.
    private static func renew(_ copy: FileDescriptor) {
        if let date = try? FileStatus(of: copy).modified { try? copy.setModified(date) }
    }

    /// - Parameters:
    ///   - holder: the names from the root down to the directory of the copy.
    ///   - path: the names from the root down to the file.
    /// - Returns: false if the copy or the file is not there.
    private func finish(_ edit: InPlaceEdit, withCopyIn holder: [String], at path: [String]) throws -> Bool {
        guard let name = path.last, let directory = try openDirectory(at: path.dropLast()) else { return false }
        defer { try? directory.close() }
        guard let holding = try openDirectory(at: holder[...]) else { return false }
        defer { try? holding.close() }
        guard let copy = try openCopy(of: edit, in: holding, named: name, in: directory) else { return false }
        defer { try? copy.close() }
        Self.renew(copy)
        if try isToBeCompleted(edit, named: name, in: directory, copy) {
            try complete(edit, named: name, in: directory, copy)
        }
        // In this order: a record without a copy would look like the loss of the content.
        try manager.store.remove(edit.key, in: InPlaceEdit.namespace)
        try? holding.unlink(named: edit.copy)
        return true
    }

    /// - Returns: nil if the copy or the file is not there.
    private func openCopy(
        of edit: InPlaceEdit, in holder: FileDescriptor, named name: String, in directory: FileDescriptor
    ) throws -> FileDescriptor? {
        do {
            guard items.file(try FileStatus(of: name, in: directory)) == edit.file else { return nil }
            return try holder.openFile(named: edit.copy)
        } catch Errno.noSuchFileOrDirectory {
            return nil
        }
    }

    /// - Returns: nil if there is no such directory.
    func openDirectory(at path: ArraySlice<String>) throws -> FileDescriptor? {
        var directory = try openRoot()
        do {
            var parent = ItemIdentifier.rootContainer
            for name in path {
                let (next, status) = try openDirectory(named: name, in: directory, parent)
                try? directory.close()
                directory = next
                parent = ItemIdentifier(items.file(status))
            }
            return directory
        } catch {
            try? directory.close()
            switch error as? Errno {
            case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels: return nil
            default: throw error
            }
        }
    }

    /// - Throws: EAGAIN while another program has the file open for writing. One that reads it has half of the content, and is not waited
    ///   for.
    private func isToBeCompleted(
        _ edit: InPlaceEdit, named name: String, in directory: FileDescriptor, _ copy: FileDescriptor
    ) throws -> Bool {
        let target = try directory.openFile(named: name)
        // It would be in the way of the write lease.
        defer { try? target.close() }
        guard try isPartlyWritten(target, edit, copy) else { return false }
        if target.isOpenForWriting { throw Errno.resourceTemporarilyUnavailable }
        return true
    }

    /// - Parameter synchronize: only tests need another one.
    func complete(
        _ edit: InPlaceEdit, named name: String, in directory: FileDescriptor, _ copy: FileDescriptor,
        synchronize: (FileDescriptor) throws -> Void = { try $0.synchronize() }
    ) throws {
        let target = try directory.openForWriting(named: name)
        defer { try? target.close() }
        // There is none while another program reads the file, and on some file systems.
        try? target.takeWriteLease()
        defer { target.giveUpLease() }
        let found = try FileStatus(of: target)
        guard try isPartlyWritten(target, edit, copy) else { return }
        var isWritten = false
        do {
            isWritten = try write(copy, to: target, expecting: found, edit, synchronize)
        } catch {
            try? noteFailure(of: edit, target)
            throw error
        }
        guard isWritten else {
            try stop(edit)
            throw Errno.resourceTemporarilyUnavailable
        }
    }

    /// - Returns: false if another program has written to the file meanwhile.
    private func write(
        _ copy: FileDescriptor, to target: FileDescriptor, expecting found: FileStatus, _ edit: InPlaceEdit,
        _ synchronize: (FileDescriptor) throws -> Void
    ) throws -> Bool {
        let wanted = try FileStatus(of: copy)
        var noted = edit
        try noteWriting(&noted)
        let isWritten = try target.takeContent(of: copy, size: wanted.size, expecting: found) { file in
            try synchronize(file)
            try noteWriting(&noted)
        }
        // With its date it is recognized as what was sent.
        if isWritten { try target.setModified(wanted.modified) }
        return isWritten
    }

    /// Records that a file is about to be written, unless that was recorded just before. The next start would take a later change for one
    /// of another program if this write was interrupted, and would remove the copy.
    func noteWriting(_ edit: inout InPlaceEdit, now: Int64 = FileTimestamp.now.seconds) throws {
        guard edit.begun < now - Self.secondsOfWriting / 2 else { return }
        edit.begun = now
        try manager.store.put(edit, at: edit.key, in: InPlaceEdit.namespace, durability: .synced)
    }

    /// Keeps the record of a write whose completion was stopped by a write of another program. The next attempt would take that for partly
    /// written where the size is the same.
    func stop(_ edit: InPlaceEdit) throws {
        var stopped = edit
        stopped.begun = .min
        try manager.store.put(stopped, at: edit.key, in: InPlaceEdit.namespace, durability: .synced)
    }

    /// Records that a write has failed, so that only what it has left counts as partly written: the next attempt would take what another
    /// program writes within the next minute for that where the size is the same.
    func noteFailure(of edit: InPlaceEdit, _ target: FileDescriptor) throws {
        var failed = edit
        failed.begun = try FileStatus(of: target).modified.seconds.saturatingSubtract(Self.secondsOfWriting)
        try manager.store.put(failed, at: edit.key, in: InPlaceEdit.namespace, durability: .synced)
    }

    private func isPartlyWritten(_ target: FileDescriptor, _ edit: InPlaceEdit, _ copy: FileDescriptor) throws -> Bool {
        let status = try FileStatus(of: target)
        guard items.file(status) == edit.file, status.modified.seconds <= edit.begun + Self.secondsOfWriting else {
            return false
        }
        return try target.isPartlyWritten(
            from: copy, status.size, of: FileStatus(of: copy).size, over: edit.size ?? status.size)
    }

    /// Whether a file is being written here, or has an interrupted write that waits until another program closes the file. One that cannot
    /// be completed for another reason may never be.
    func hasWaitingEdit(_ status: FileStatus) throws -> Bool {
        let file = items.file(status)
        let waiting = edits.withLock { $0 }.union(editsInUse.withLock { $0 })
        return try manager.store.list(in: InPlaceEdit.namespace) { _ in }
            .contains { waiting.contains($0.key) && $0.record.file == file }
    }

    /// A later change of the file is by another process.
    private static let secondsOfWriting: Int64 = 60
}
