import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Removes directories, but not the new contents of interrupted writes that are in them: the files may have links elsewhere.
extension Folder {
    /// A search of directories for the copies of interrupted writes and for their files.
    private struct CopySearch {
        let items: FolderItems
        /// Whether there are records of interrupted writes.
        let hasRecords: Bool
        /// The files that are partly written, as ``FolderItems/file(_:)``.
        let files: Set<String>
        /// The directories that take the copies: the names from the root down to each. The first one that can take a copy gets it.
        let holders: [[String]]
        /// Those of `files` that were found, open as references.
        var found: [String: FileDescriptor] = [:]
        /// Whether a copy was moved that no search had found.
        var hasLost = false
    }

    /// Removes names in a directory recursively. The copy of an interrupted write is moved to another directory first, and is removed at
    /// the end if its file was removed with all its links. So is one of another domain of the same folder, which stays.
    ///
    /// - Parameters:
    ///   - parent: the directory above, which takes a copy if the root cannot.
    ///   - check: called before each name; its error ends the removal.
    /// - Throws: EBUSY if a copy is in use by a write, or no directory takes it; as `FileDescriptor.remove(_:preparing:)`.
    func remove(
        _ names: [[UInt8]], in directory: FileDescriptor, parent: ItemIdentifier, checking check: () throws -> Void
    ) throws {
        var search = try copySearch(parent: parent)
        defer { for file in search.found.values { try? file.close() } }
        if search.hasRecords { try moveCopies(among: names, in: directory, &search, checking: check) }
        let holders = search.holders
        try directory.remove(names) { bytes, directory in
            try check()
            try moveForeignCopy(bytes, from: directory, to: holders)
        }
        for (file, reference) in search.found where (try? FileStatus(of: reference))?.linkCount == 0 {
            forgetEdits(of: file)
        }
        if search.hasLost { finishWritingInPlace() }
    }

    /// Moves copies of interrupted writes out of a directory that is about to be trashed: other programs empty a trash, too, and no search
    /// for a copy looks there. One that cannot be moved stays in the directory.
    func keepCopies(of name: String, in directory: FileDescriptor, parent: ItemIdentifier) {
        guard var search = try? copySearch(parent: parent), search.hasRecords else { return }
        defer { for file in search.found.values { try? file.close() } }
        try? moveCopies(among: [FileNameText.bytes(of: name)], in: directory, &search) {}
    }

    /// A file was removed with its last link: nothing needs its new content.
    ///
    /// - Parameter file: as ``FolderItems/file(_:)``.
    func forgetEdits(of file: String) {
        do {
            try removeEdits(of: file)
        } catch {
            manager.report("\(error)")
        }
    }

    /// Removes the records and the copies of interrupted writes of a file.
    ///
    /// - Parameters:
    ///   - file: as ``FolderItems/file(_:)``.
    ///   - newest: the record of a write that goes on, which stays.
    /// - Throws: EBUSY if one of the writes is just being completed; the errors of the store.
    func removeEdits(of file: String, except newest: ProviderStoreKey? = nil) throws {
        let records = try manager.store.list(in: InPlaceEdit.namespace) { _ in }
        for (key, edit) in records where edit.file == file && key != newest {
            guard edits.withLock({ $0.insert(key).inserted }) else { throw Errno.resourceBusy }
            defer { edits.withLock { _ = $0.remove(key) } }
            guard let current = try manager.store.get(key, in: InPlaceEdit.namespace) else { continue }
            // In this order: a record without a copy would look like the loss of the content.
            try manager.store.remove(key, in: InPlaceEdit.namespace, durability: .synced)
            let path = current.holder ?? current.directory
            guard let holder = try? openDirectory(at: path[...]) else { continue }
            defer { try? holder.close() }
            try? holder.unlink(named: current.copy)
        }
    }

    private func copySearch(parent: ItemIdentifier) throws -> CopySearch {
        var hasUnreadable = false
        let records = try manager.store.list(in: InPlaceEdit.namespace) { _ in hasUnreadable = true }
        var holders: [[String]] = [[]]
        // The root may be on another file system, or closed to this user.
        if let above = path(of: parent), !above.isEmpty { holders.append(above) }
        return CopySearch(
            items: items, hasRecords: hasUnreadable || !records.isEmpty, files: Set(records.map { $0.record.file }),
            holders: holders)
    }

    private func moveCopies(
        among names: [[UInt8]], in directory: FileDescriptor, _ search: inout CopySearch,
        checking check: () throws -> Void
    ) throws {
        var descent = try DirectoryDescent(from: directory, names)
        while true {
            guard let bytes = descent.next() else {
                guard try descent.leave() != nil else { return }
                continue
            }
            try check()
            let directory = descent.directory
            let name = FileNameText.text(of: bytes)
            guard let status = try Self.ifThere({ try FileStatus(of: name, in: directory) }) else { continue }
            if status.kind == .directory {
                // A removal ends at another file system.
                guard status.device == descent.device,
                    let inner = try Self.ifThere({ try directory.openDirectory(named: name) })
                else { continue }
                try descent.enter(bytes, inner)
            } else if bytes.starts(with: HiddenName.prefix.utf8), isNeeded(bytes) {
                try moveCopy(name, from: directory, &search)
            } else {
                let file = search.items.file(status)
                guard search.files.contains(file), search.found[file] == nil,
                    let reference = try Self.ifThere({ try directory.openReference(named: name) })
                else { continue }
                // Another file may have taken the name.
                if let opened = try? FileStatus(of: reference), search.items.file(opened) == file {
                    search.found[file] = reference
                } else {
                    try? reference.close()
                }
            }
        }
    }

    /// The record says where the copy is before this returns. After a crash between both steps it is found in the root by a search.
    private func moveCopy(_ name: String, from directory: FileDescriptor, _ search: inout CopySearch) throws {
        let key = ProviderStoreKey(name)
        guard edits.withLock({ $0.insert(key).inserted }) else { throw Errno.resourceBusy }
        defer { edits.withLock { _ = $0.remove(key) } }
        // Another call may have completed the write since.
        guard var edit = try manager.store.get(key, in: InPlaceEdit.namespace) else { return }
        edit.holder = try move(name, from: directory, to: search.holders)
        try manager.store.put(edit, at: key, in: InPlaceEdit.namespace, durability: .synced)
        if lostEdits.withLock({ $0.remove(key) }) != nil { search.hasLost = true }
    }

    /// Moves a copy without a record here, unless it is a leftover. It is one of another domain of the same folder, or of a write that has
    /// just begun.
    private func moveForeignCopy(_ bytes: [UInt8], from directory: FileDescriptor, to holders: [[String]]) throws {
        let name = FileNameText.text(of: bytes)
        guard InPlaceEdit.isCopyName(name), let status = try? FileStatus(of: name, in: directory),
            status.kind == .regular, !isOld(status, hiddenAs: name)
        else { return }
        _ = try move(name, from: directory, to: holders)
    }

    /// Moves a copy to the first directory that takes it.
    ///
    /// - Returns: the names from the root down to that directory.
    private func move(_ name: String, from directory: FileDescriptor, to holders: [[String]]) throws -> [String] {
        for path in holders {
            guard let holder = try? openDirectory(at: path[...]) else { continue }
            defer { try? holder.close() }
            do {
                try readOnlyDirectories.writing(to: [directory, holder]) {
                    try directory.rename(name, to: name, in: holder)
                }
            } catch {
                continue
            }
            try holder.synchronize(asDirectory: true)
            return path
        }
        throw Errno.resourceBusy
    }

    private static func ifThere<Value>(_ body: () throws -> Value) throws -> Value? {
        do {
            return try body()
        } catch Errno.noSuchFileOrDirectory {
            return nil
        }
    }
}
