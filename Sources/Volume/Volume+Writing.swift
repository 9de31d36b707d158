import Logging
import Replica
import Syscalls
import SystemPackage

/// Changes of names and attributes: each is one transaction of the replica.
extension Volume {
    /// Creates a directory, a file, or a local-only node, by the kind and permissions in a mode.
    ///
    /// - Parameter isListed: whether the directory must be listed. A name created in an unlisted directory may
    ///   collide with one on the remote; the collision is resolved as a conflict when the item is uploaded or the
    ///   directory is listed.
    package func make(
        _ name: String, in parent: UInt64, mode: UInt32, device: UInt32 = 0, caller: Requester, isListed: Bool = true,
        request: RequestNumber? = nil
    ) throws(VolumeError) -> Attributes {
        guard let kind = InodeKind(mode: mode), kind != .symbolicLink else { throw .refused(.invalidArgument) }
        return try make(
            name, in: parent, NewInode(kind: kind, permissions: UInt16(mode & 0o7777), device: device), caller: caller,
            isListed: isListed, request: request)
    }

    package func makeSymbolicLink(
        _ name: String, in parent: UInt64, to target: String, caller: Requester, isListed: Bool = true,
        request: RequestNumber? = nil
    ) throws(VolumeError) -> Attributes {
        try make(
            name, in: parent, NewInode(kind: .symbolicLink, permissions: 0o777, linkTarget: target), caller: caller,
            isListed: isListed, request: request)
    }

    /// - Parameter isListed: as for ``make(_:in:mode:device:caller:isListed:request:)``.
    package func link(
        _ node: UInt64, as name: String, in parent: UInt64, isListed: Bool = true, request: RequestNumber? = nil
    ) throws(VolumeError) -> Attributes {
        let inode = try change(request, .inode) {
            try $0.names.link(InodeNumber(node), as: name, in: InodeNumber(parent), isListed: isListed)
        }
        return attributes(for: inode)
    }

    /// Removes a name of anything but a directory.
    ///
    /// - Parameter isListed: whether the directory must be listed. In an unlisted directory only what was created here and not
    ///   sent is removed.
    package func unlink(
        _ name: String, in parent: UInt64, isListed: Bool = true, request: RequestNumber? = nil
    ) throws(VolumeError) {
        try change(request, .nothing) { _ = try $0.names.unlink(name, in: InodeNumber(parent), isListed: isListed) }
    }

    /// - Parameter isListed: as for ``unlink(_:in:isListed:request:)``.
    package func removeDirectory(
        _ name: String, in parent: UInt64, isListed: Bool = true, request: RequestNumber? = nil
    ) throws(VolumeError) {
        try change(request, .nothing) {
            try $0.names.removeDirectory(name, in: InodeNumber(parent), isListed: isListed)
        }
    }

    /// Renames an item, moves it, or both.
    ///
    /// - Parameter isListed: whether both directories must be listed. Otherwise only what was created here and not sent is moved
    ///   or replaced.
    package func rename(
        _ name: String, in parent: UInt64, to newName: String, in newParent: UInt64, noReplace: Bool, exchange: Bool,
        isListed: Bool = true, request: RequestNumber? = nil
    ) throws(VolumeError) {
        let rule: RenameRule
        switch (noReplace, exchange) {
        case (false, false): rule = .replace
        case (true, false): rule = .keep
        case (false, true): rule = .exchange
        case (true, true): throw .refused(.invalidArgument)
        }
        try change(request, .nothing) {
            try $0.names.rename(
                name, in: InodeNumber(parent), to: newName, in: InodeNumber(newParent), rule, isListed: isListed)
        }
    }

    package func setAttributes(
        of node: UInt64, to changes: LocalAttributes, caller: Requester, request: RequestNumber? = nil
    ) throws(VolumeError) -> Attributes {
        let number = InodeNumber(node)
        guard changes != LocalAttributes() else {
            return try takePrivileges(of: number, caller: caller, request: request)
        }
        if let size = changes.size { try checkExtent(at: 0, length: size) }
        if !isReadOnly,
            let inode = replica.changeAhead(number, to: changes, caller: LocalCaller(caller), request: request)
        {
            return attributes(for: inode)
        }
        if let size = changes.size {
            try verifyBeforeTruncating(number, to: size, request)
        } else if changes.modifiedAt != nil {
            try verifyBeforeDating(number)
        }
        let inode = try change(request, .inode, changingNames: false) {
            try $0.attributes.setAttributes(of: number, to: changes, caller: LocalCaller(caller))
        }
        if changes.size != nil { contentWasReplaced(number) }
        return attributes(for: inode)
    }

    /// As before an open for writing: the truncation would send content that is not what the row says.
    private func verifyBeforeTruncating(
        _ number: InodeNumber, to size: Int64, _ request: RequestNumber?
    ) throws(VolumeError) {
        guard !isReadOnly, !files.isOpen(number), let inode = try known({ try replica.database.inode(number) }),
            inode.kind == .file, inode.content == .materialized, try !hasContentFile(inode, isNeeded: true)
        else { return }
        // SIGKILL has interrupted this very truncation before its row was written.
        if request?.isResent == true, (try? replica.contentStatus(of: number).size) == size { return }
        _ = try known { try replica.verifyContent(of: number, mayBeInUse: true, open: files) }
    }

    /// A new date would take the evidence that something was written to a synced file without a row. A file that is open was verified
    /// before.
    private func verifyBeforeDating(_ number: InodeNumber) throws(VolumeError) {
        guard replica.mayHaveDoubtfulContent, !isReadOnly, !files.isOpen(number),
            let inode = try known({ try replica.database.inode(number) }), inode.contentStamp == nil,
            let status = try? replica.contentStatus(of: number), replica.isDoubtful(status, inode)
        else { return }
        _ = try known { try replica.verifyContent(of: number, mayBeInUse: true, open: files) }
    }

    /// Clears the set-ID bits: for `chown(2)` without owner and group, and for the kernel's own SETATTR after a
    /// write. FUSE does not distinguish the two; a caller that may write the file is assumed to be writing.
    private func takePrivileges(
        of number: InodeNumber, caller: Requester, request: RequestNumber?
    ) throws(VolumeError) -> Attributes {
        let isWritten = files.isOpenForWriting(number)
        let usualOwner = ownership.user
        let inode = try change(request, .inode, changingNames: false) {
            try $0.contents.takeSetID(
                of: number, caller: LocalCaller(caller), isWriting: isWritten, usualOwner: usualOwner)
        }
        return attributes(for: inode)
    }

    /// Makes an inode and all earlier metadata changes durable; with ``waitsForRemote`` also on the remote.
    ///
    /// - Parameter isProvided: whether the prerequisite of an earlier attempt has been fulfilled.
    package func synchronize(_ node: UInt64, isProvided: Bool = false) throws(VolumeError) {
        guard !isProvided else { return }
        try known { try replica.synchronizeContent(of: InodeNumber(node)) }
        if waitsForRemote { throw .needs(.upload(of: InodeNumber(node))) }
    }

    /// Makes all names durable; with ``waitsForRemote`` a directory and its descendants also on the remote.
    package func synchronizeNames(of node: UInt64, isProvided: Bool = false) throws(VolumeError) {
        guard !isProvided else { return }
        try known { try replica.synchronize() }
        if waitsForRemote { throw .needs(.upload(of: InodeNumber(node))) }
    }

    private func make(
        _ name: String, in parent: UInt64, _ new: NewInode, caller: Requester, isListed: Bool,
        request: RequestNumber?
    ) throws(VolumeError) -> Attributes {
        let group = ownership.group
        let inode = try change(request, .inode) { changes in
            try changes.names.create(
                name, in: InodeNumber(parent), new, caller: LocalCaller(caller), usualGroup: group, isListed: isListed)
        }
        return Attributes(inode, ownership: ownership)
    }

    // MARK: - What the extensions share

    /// Commits a local change and reports its effects.
    ///
    /// - Parameters:
    ///   - request: the kernel's request that is carried out; nil if its result need not be recorded.
    ///   - result: how the result is recorded.
    ///   - changingNames: false if no names or directories change.
    ///   - level: that at which errors of the database are logged.
    @discardableResult
    func change<Value>(
        _ request: RequestNumber? = nil, _ result: RecordedResult<Value>? = nil, changingNames: Bool = true,
        failuresAt level: Logger.Level = .error, _ body: (LocalChanges) throws -> Value
    ) throws(VolumeError) -> Value {
        guard !isReadOnly else { throw .refused(.readOnlyFileSystem) }
        do {
            let (value, effects) = try replica.change(
                open: files, changingNames: changingNames, request: request, result: result, body)
            observer.volumeDidChange(effects)
            return value
        } catch let obstacle as LocalObstacle {
            switch obstacle {
            case .refused(let error): throw .refused(error)
            case .listing(let number): throw .needs(.listing(of: number, beyond: nil))
            case .content(let number): throw .needs(.whole(of: number))
            case .room: throw .needs(.room)
            }
        } catch {
            logger.log(level: level, "the replica cannot be changed: \(error)")
            throw .refused(.ioError)
        }
    }

    /// Reports a change that was not made by a system call.
    package func noteChange(_ effects: ReplicaEffects) { observer.volumeDidChange(effects) }

    /// The attributes of an inode for the kernel, also while it is being written.
    func attributes(for inode: InodeRecord) -> Attributes {
        let attributes = shownAttributes(of: inode)
        if inode.kind == .file { files.file(inode.number)?.noteAnswer(attributes.size) }
        return attributes
    }

    /// The marked row says whether a file is being written: a separate check would let a caller see the old attributes of a file that was
    /// closed in between.
    func shownAttributes(of inode: InodeRecord) -> Attributes {
        guard inode.kind == .file,
            inode.contentStamp != nil || inode.hasUnusualAllocation || inode.content == .partial,
            let content = try? replica.contentStatus(of: inode.number)
        else { return Attributes(inode, ownership: ownership) }
        var attributes = Attributes(inode, ownership: ownership)
        if inode.contentStamp != nil {
            attributes = Attributes(inode, content: content, ownership: ownership)
            // Archivers treat a file without blocks as one hole.
            if attributes.blocks == 0, attributes.size > 0, mayHaveUnwrittenPages(inode.number) {
                attributes.blocks = 1
            }
            return attributes
        }
        // What is here of a partial file may be a hole.
        attributes.blocks = max(inode.content == .partial ? 1 : 0, content.allocated / 512)
        return attributes
    }
}

extension InodeNumber {
    init(_ node: UInt64) {
        self.init(rawValue: Int64(bitPattern: node))
    }
}

extension LocalCaller {
    init(_ caller: Requester) {
        self.init(
            user: caller.userIdentifier, group: caller.groupIdentifier, process: caller.processIdentifier,
            umask: caller.umask)
    }
}
