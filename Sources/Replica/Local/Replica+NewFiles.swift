import FileNames
import FileProvider
import Syscalls
import SystemPackage

extension Replica {
    /// Makes a file that is open for writing, without waiting for the database. It survives the daemon's death from then
    /// on, and every process sees it.
    ///
    /// - Parameter request: the kernel's request that is carried out. One that is sent again needs a transaction, which looks
    ///   for its result.
    /// - Returns: the file, and its content, open, the caller's to close; nil where it has to be made in a transaction
    ///   (``LocalChanges/createFile(_:in:permissions:caller:usualGroup:)``), which also says what is wrong.
    package func createAhead(
        _ name: String, in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32,
        request: RequestNumber? = nil
    ) -> (inode: InodeRecord, content: FileDescriptor)? {
        guard request?.isResent != true, FileNameText.byteCount(of: name) <= FileProviderItem.maximumFilenameLength,
            ignoredNames.isSent(name), database.reserve.hasRoom,
            var ticket = database.newFiles.ticket(),
            var rules = try? rules(of: name, in: parent, ticket)
        else { return nil }
        let now = FileTimestamp.now
        let creation = Creation(
            item: NewItem(
                kind: .file, name: name, parent: parent, capabilities: rules.capabilities, madeAt: now),
            new: NewInode(kind: .file, permissions: permissions & ~caller.umask), owner: caller.user,
            group: rules.directory.groupOfNew(caller, usualGroup: usualGroup), isWritten: true)
        guard let content = try? contents.create(ticket.number, size: 0, isFirst: true) else { return nil }
        while true {
            if let isToBeScheduled = database.newFiles.add(creation, by: rules, ticket, for: request) {
                if isToBeScheduled { database.commitAllSoon() }
                return (creation.inode(ticket.number), content)
            }
            // A transaction that wrote files since the check of the name may have written one of this name.
            guard let renewed = database.newFiles.renew(ticket),
                let checked = try? self.rules(of: name, in: parent, renewed)
            else { break }
            (ticket, rules) = (renewed, checked)
        }
        try? content.close()
        try? contents.remove(ticket.number)
        return nil
    }

    /// Changes attributes of a file that was made and is not in the database yet, without waiting for the database.
    ///
    /// - Parameter request: as of ``createAhead(_:in:permissions:caller:usualGroup:request:)``.
    /// - Returns: the file; nil where it has to be changed in a transaction
    ///   (``MetadataChanges/setAttributes(of:to:caller:)``), which also says what is wrong.
    package func changeAhead(
        _ number: InodeNumber, to changes: LocalAttributes, caller: LocalCaller, request: RequestNumber? = nil
    ) -> InodeRecord? {
        guard request?.isResent != true else { return nil }
        let now = FileTimestamp.now
        return database.newFiles.change(number, for: request) { creation in
            guard creation.setAttributes(to: changes, caller: caller, at: now) else { return false }
            // The content file's time is the truth while it is written.
            guard changes.modifiedAt != nil, let time = creation.modifiedAt else { return true }
            return (try? contents.setModificationTime(of: number, to: time)) != nil
        }
    }

    /// Nil where there are no ordinary files of the remote's, and where the name is taken.
    private func rules(
        of name: String, in parent: InodeNumber, _ ticket: NewFiles.Ticket
    ) throws -> CreationRules? {
        // The rules of a directory are the same for all other names.
        guard !TrashRole.isShared(name, in: parent) else { return nil }
        if let (rules, isFree) = database.newFiles.rules(of: parent, for: name, ticket) {
            return try isFree || !database.queryWithoutNewFiles { try $0.hasItem(named: name, in: parent) }
                ? rules : nil
        }
        return try database.queryWithoutNewFiles { db in
            let transaction = LocalTransaction(db: db, open: NothingOpen(), contents: contents)
            let directory = try NameChanges(transaction: transaction).directory(for: name, in: parent)
            let (role, isLocal) = try TrashMoves(transaction: transaction).role(ofNew: name, .file, in: parent)
            guard directory.trashRole == .none, role == .none, !isLocal, directory.exclusion == .none,
                try db.extendedAttribute(AccessControlList.defaultKey, of: parent) == nil
            else { return nil }
            return CreationRules(
                directory: directory, capabilities: try Exclusions(transaction: transaction).newCapabilities(),
                era: ticket.era)
        }
    }
}
