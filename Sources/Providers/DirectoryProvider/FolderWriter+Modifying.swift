import FileProvider
import Syscalls
import SystemPackage

/// Changes of existing items.
extension FolderWriter {
    func modify(
        _ item: FileProviderItem, base: ItemVersion, _ fields: ItemFields, contents: ContentSource?
    ) throws -> ItemChange {
        // A file that is partly written is then seen with what was sent.
        if fields.contains(.contents) { folder.finishWritingInPlace() }
        guard let place = try find(item, fields) else { return try recognize(item, fields, contents) }
        return try modify(place, item, base, fields, contents)
    }

    /// Finds an item at its known path or at the requested one: an earlier call whose response was lost may have
    /// moved it.
    private func find(_ item: FileProviderItem, _ fields: ItemFields) throws -> Folder.Place? {
        if let place = try folder.findIfThere(item.itemIdentifier) { return place }
        guard !fields.isDisjoint(with: [.filename, .parentItemIdentifier]) else { return nil }
        if let place = try folder.place(of: item.itemIdentifier, named: item.filename, in: item.parentItemIdentifier),
            folder.isMoved(place)
        {
            return place
        }
        return nil
    }

    /// New content replaces the file of an item. After a lost response the new file exists, and the item does not.
    private func recognize(
        _ item: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?
    ) throws -> ItemChange {
        guard fields.contains(.contents), let contents else {
            throw FileProviderError.noSuchItem(item.itemIdentifier)
        }
        let directory = try openTarget(item.parentItemIdentifier)
        defer { try? directory.close() }
        let entry = NamedEntry(directory: directory, name: item.filename, parent: item.parentItemIdentifier)
        guard let status = try status(of: entry), try hasContent(entry, status, contents) else {
            throw FileProviderError.noSuchItem(item.itemIdentifier)
        }
        let (pending, stored) = try apply(fields, of: item, to: entry, expecting: status)
        return try answer(entry, pending, stored: stored)
    }

    private func modify(
        _ place: borrowing Folder.Place, _ item: FileProviderItem, _ base: ItemVersion, _ fields: ItemFields,
        _ contents: ContentSource?
    ) throws -> ItemChange {
        guard let name = place.name else { return try modifyRoot(place, item, fields) }
        let old = NamedEntry(directory: place.directory, name: name, parent: place.parent)
        let status = place.status
        let hasNewContent = fields.contains(.contents)
        let fields = try fieldsToStore(fields, of: item, at: old, status, base, contents)
        let isElsewhere = fields.contains(.parentItemIdentifier) && item.parentItemIdentifier != old.parent
        let target = isElsewhere ? try openTarget(item.parentItemIdentifier) : nil
        defer { try? target?.close() }
        var new = NamedEntry(
            directory: target ?? old.directory, name: fields.contains(.filename) ? item.filename : old.name,
            parent: isElsewhere ? item.parentItemIdentifier : old.parent)
        let moves = new.parent != old.parent || !new.name.utf8.elementsEqual(old.name.utf8)
        var takenName: String?
        if moves, new.parent == .trashContainer {
            let path = isElsewhere ? (folder.path(of: old.parent) ?? []) + [old.name] : [new.name]
            new.name = try folder.takeTrashName(for: path, in: new.directory)
            takenName = new.name
        }
        defer { if let takenName { folder.giveUpTrashName(takenName, in: new.directory) } }
        if moves {
            try checkName(new.name, in: new.parent)
            if let there = try self.status(of: new), !isRenamedByCase(from: old, to: new, status, there) {
                throw collision(new)
            }
        }
        if takenName != nil, status.kind == .directory {
            folder.keepCopies(of: old.name, in: old.directory, parent: old.parent)
        }
        let isNamed = moves || fields.contains(.contents)
        let (pending, stored) = try folder.readOnlyDirectories.writing(
            to: isNamed ? [old.directory, new.directory] : []
        ) { () -> (ItemFields, [UInt8]?) in
            if fields.contains(.contents) {
                return try replaceContent(from: old, to: new, moves: moves, status, item, fields, contents)
            }
            if moves { try move(item.itemIdentifier, from: old, to: new, status) }
            return try apply(fields, of: item, to: new, expecting: status)
        }
        takenName = nil
        if moves {
            folder.noteGone(old.name, old.parent)
            if old.parent == .trashContainer { folder.giveUpTrashName(old.name, in: old.directory) }
        }
        // Another program may have written the file in place and given it its old time: the system has not seen that.
        let before = FolderItems.version(of: status)
        let isUnseen =
            status.kind == .regular && !hasNewContent && before.contentVersion == base.contentVersion
            && before.metadataVersion != base.metadataVersion && !folder.isOnNetwork
        // To synchronize the directories may take long: another program may write the file meanwhile.
        let change = try answer(new, pending, stored: stored, known: isUnseen ? base.metadataVersion : nil)
        if moves { try old.directory.synchronize(asDirectory: true) }
        try new.directory.synchronize(asDirectory: true)
        if moves, case .applied(let moved, _, _) = change { folder.noteMoved(moved) }
        return change
    }

    /// The fields of a change that must still be applied.
    ///
    /// - Throws: `localVersionConflictingWithServer` if new content is based on another version; EBUSY if the file is partly written, and
    ///   another program has it open for writing.
    private func fieldsToStore(
        _ fields: ItemFields, of item: FileProviderItem, at entry: NamedEntry, _ status: FileStatus,
        _ base: ItemVersion, _ contents: ContentSource?
    ) throws -> ItemFields {
        if fields.contains(.contents), contents == nil, item.documentSize != 0 {
            throw FileProviderError(.cannotSynchronize, "the content of '\(entry.name)' was not sent")
        }
        let isBase = try isBase(base, status, of: item, at: entry, fields)
        guard fields.contains(.contents) else {
            // The modification time belongs to the bytes of the base version; other bytes would look unchanged with
            // it.
            return isBase || status.kind != .regular ? fields : fields.subtracting(.contentModificationDate)
        }
        guard status.kind == .regular else {
            throw FileProviderError(.cannotSynchronize, "'\(entry.name)' is no file on the source")
        }
        if isBase { return fields }
        guard let contents, try hasContent(entry, status, contents) else {
            // Half of a content is no version of the file.
            if try folder.hasWaitingEdit(status) {
                throw FileProviderError(
                    .posix, "'\(entry.name)' on the source is partly written, and in use by another program",
                    itemIdentifier: item.itemIdentifier, errno: .resourceBusy)
            }
            throw conflict(at: entry)
        }
        return fields.subtracting(.contents)
    }

    /// Whether a file has the content that a change is based on.
    private func isBase(
        _ base: ItemVersion, _ status: FileStatus, of item: FileProviderItem, at entry: NamedEntry, _ fields: ItemFields
    ) throws -> Bool {
        guard FolderItems.version(of: status).contentVersion == base.contentVersion else { return false }
        guard fields.contains(.contents), mayBeRewritten(status, since: base, in: entry.directory),
            let there = try self.item(at: entry)
        else { return true }
        // The system has seen that nothing explains the change, and has not compared the content.
        if FolderItems.isDoubted(base) { return false }
        // It was written in place and got its old time, unless its name, or what the change leaves as it is, shows why the version is
        // another one.
        let here = ChangeLog.Place(entry.name, in: entry.parent)
        if let known = folder.knownPlace(of: item.itemIdentifier), known != here { return true }
        let isOtherMode =
            fields.isDisjoint(with: [.permissions, .fileSystemFlags]) && there.permissions != item.permissions
        let isOtherOwner = !fields.contains(.ownership) && (there.owner != item.owner || there.group != item.group)
        return isOtherMode || isOtherOwner
            || !fields.contains(.extendedAttributes) && there.extendedAttributes != item.extendedAttributes
    }

    /// The name and parent of the root cannot be changed.
    private func modifyRoot(
        _ place: borrowing Folder.Place, _ item: FileProviderItem, _ fields: ItemFields
    ) throws -> ItemChange {
        let pending = try folder.setAttributes(fields, of: item, to: place.directory, .directory)
        let root = folder.items.root(status: try folder.status(of: place.directory))
        return .applied(root, stillPending: pending, shouldFetchContent: false)
    }

    private func openTarget(_ parent: ItemIdentifier) throws -> FileDescriptor {
        do {
            if parent == .trashContainer { return try folder.openOwnTrash() }
            return try folder.openDirectory(parent)
        } catch let error as Errno {
            throw folder.writeFailure(error, of: parent, named: nil)
        }
    }

    private func conflict(at entry: NamedEntry) -> any Error {
        guard let item = try? item(at: entry) else {
            return Errno.noSuchFileOrDirectory
        }
        return FileProviderError(.localVersionConflictingWithServer, item: item)
    }

    /// Replaces a file by a new one, and moves it first if needed, so that there is always exactly one file.
    ///
    /// - Returns: the fields that were not stored, and the version of the new file.
    private func replaceContent(
        from old: NamedEntry, to new: NamedEntry, moves: Bool, _ status: FileStatus, _ item: FileProviderItem,
        _ fields: ItemFields, _ contents: ContentSource?
    ) throws -> (pending: ItemFields, stored: [UInt8]) {
        let upload = try upload(contents, of: item, into: new.directory, permissions: status.permissions & 0o777)
        let before = try old.directory.openReference(named: old.name)
        defer { try? before.close() }
        guard try FileStatus(of: before).isSameFile(as: status) else { throw conflict(at: old) }
        try FolderAttributes.carryOver(from: before, status, to: upload.file, except: fields, of: item)
        let pending = try FolderAttributes.apply(fields, of: item, to: upload.file)
        try finish(upload, contents)
        let stored = try contentVersion(of: upload.file)
        if moves {
            // To copy the content may have taken long, and a move gives the file another change time.
            if let now = try self.status(of: old, isFresh: true), now.isSameFile(as: status),
                isRewritten(now, since: status, at: old)
            {
                throw conflict(at: old)
            }
            try move(item.itemIdentifier, from: old, to: new, status)
        }
        do {
            if status.linkCount > 1, let path = folder.path(of: new.parent) {
                var written: (pending: ItemFields, stored: [UInt8])?
                let isWritten = try upload.writeInPlace(new.name, expecting: status, path: path, folder, cancellation) {
                    // The time is set before the rename: set afterwards, it could hide a later write by another
                    // program.
                    let pending = try FolderAttributes.apply(fields, of: item, to: before)
                    written = (pending, try contentVersion(of: before))
                }
                if isWritten, let written { return written }
            }
            func replace() throws -> Upload.Exchange {
                // Likewise.
                if !moves, let now = try self.status(of: new, isFresh: true), isRewritten(now, since: status, at: new) {
                    return .conflict
                }
                return try upload.replace(new.name, expecting: status, folder, cancellation)
            }
            let isReplaced = try moves ? replace() : folder.keepingTime(of: new.directory, replace)
            if case .done = isReplaced {
                if status.linkCount > 1 {
                    folder.manager.report(
                        "'\(new.name)' is in use on the source and was replaced: "
                            + "its other hard links keep the old content")
                }
                folder.noteMade(new.name, in: new.directory, new.parent)
                return (pending, stored)
            }
        } catch {
            if moves { moveBack(item.itemIdentifier, from: new, to: old, status) }
            throw error
        }
        if moves { moveBack(item.itemIdentifier, from: new, to: old, status) }
        throw conflict(at: old)
    }

    /// Whether a file was written in place and got its old time since it was looked at, unless its mode or owner shows why its change time
    /// is another one.
    private func isRewritten(_ now: FileStatus, since status: FileStatus, at entry: NamedEntry) -> Bool {
        status.linkCount == 1 && mayBeRewritten(now, since: FolderItems.version(of: status), in: entry.directory)
            && now.permissions == status.permissions && now.owner == status.owner && now.group == status.group
    }

    /// Whether both names are the item's on a file system that ignores case. Two hard links are two items.
    private func isRenamedByCase(
        from old: NamedEntry, to new: NamedEntry, _ status: FileStatus, _ there: FileStatus
    ) -> Bool {
        new.parent == old.parent && there.isSameFile(as: status) && (status.kind == .directory || status.linkCount == 1)
            && new.name.lowercased() == old.name.lowercased()
    }

    /// rename(2) does nothing where both names are the same file. The name between is one that is shown: after a crash there the item
    /// has that name, and is renamed again. Another program may make a file with either name meanwhile: it is not replaced.
    ///
    /// - Throws: `filenameCollision` if another file has the new name by then; the item has the old name again, or one beside it.
    func changeCase(from old: NamedEntry, to new: NamedEntry) throws {
        let between = "renaming-\(UInt32.random(in: .min ... .max))"
        try old.directory.renameNewOrLink(old.name, to: between)
        do throws(Errno) {
            try old.directory.renameNewOrLink(between, to: new.name)
        } catch {
            folder.giveBack(between, as: old.name, in: old.directory)
            guard error == .fileExists else { throw error }
            throw collision(new)
        }
    }

    /// - Throws: `filenameCollision`; `cannotSynchronize` if a directory would become its own descendant.
    private func move(
        _ identifier: ItemIdentifier, from old: NamedEntry, to new: NamedEntry, _ status: FileStatus
    ) throws {
        try folder.renaming(identifier, status, to: ChangeLog.Place(new.name, in: new.parent)) {
            try cancellation.check()
            try rename(from: old, to: new, status)
        }
    }

    /// Undoes a move, also if the change was given up or the store cannot be written.
    private func moveBack(
        _ identifier: ItemIdentifier, from new: NamedEntry, to old: NamedEntry, _ status: FileStatus
    ) {
        try? folder.renaming(identifier, status, to: ChangeLog.Place(old.name, in: old.parent), isUndoing: true) {
            try rename(from: new, to: old, status)
        }
    }

    private func rename(from old: NamedEntry, to new: NamedEntry, _ status: FileStatus) throws {
        do {
            try old.directory.renameNew(old.name, to: new.name, in: new.directory)
        } catch {
            switch error {
            case .fileExists:
                guard let there = try self.status(of: new), isRenamedByCase(from: old, to: new, status, there) else {
                    throw collision(new)
                }
                try changeCase(from: old, to: new)
            case .invalidArgument, .notSupported: try moveByHand(from: old, to: new, status)
            default: throw error
            }
        }
        // Another file may have taken the old name.
        guard let moved = try? FileStatus(of: new.name, in: new.directory), moved.isSameFile(as: status) else {
            try? new.directory.renameNew(new.name, to: old.name, in: old.directory)
            throw Errno.noSuchFileOrDirectory
        }
    }

    /// For file systems without RENAME_NOREPLACE: the check and the rename are not atomic.
    private func moveByHand(from old: NamedEntry, to new: NamedEntry, _ status: FileStatus) throws {
        if let there = try self.status(of: new, isFresh: true) {
            guard isRenamedByCase(from: old, to: new, status, there) else { throw collision(new) }
            return try changeCase(from: old, to: new)
        }
        do {
            try old.directory.rename(old.name, to: new.name, in: new.directory)
        } catch {
            guard error == .invalidArgument, status.kind == .directory else { throw error }
            throw FileProviderError(.cannotSynchronize, "'\(old.name)' cannot come below itself")
        }
    }
}
