import FileProvider
import SystemPackage

/// Attributes, times and extended attributes.
package struct MetadataChanges: LocalPart {
    let transaction: LocalTransaction
    private var writing: ContentChanges { ContentChanges(transaction: transaction) }
    private var access: AccessControl { AccessControl(transaction: transaction) }

    /// Changes attributes of an inode.
    ///
    /// - Throws: ``LocalObstacle``: EISDIR, EINVAL, EACCES, what truncating says.
    package func setAttributes(
        of number: InodeNumber, to changes: LocalAttributes, caller: LocalCaller
    ) throws -> InodeRecord {
        if let size = changes.size { try writing.truncate(number, to: size, caller: caller) }
        let file = try changeable(number)
        if changes.changesWhatTheRemoteHas { try checkAllowsWriting(file) }
        let before = file.inode
        try checkMayChange(before)
        if let permissions = changes.permissions { try access.permissionsWereSet(to: permissions, of: number) }
        if changes.owner != nil || changes.group != nil { try access.takeCapabilities(of: number) }
        var record = before
        if changes.modifiedAt != nil, before.contentStamp != nil {
            try writing.compareContent(number)
            record = try inode(number)
        }
        record.setAttributes(to: changes, caller: caller, at: now)
        if changes.modifiedAt != nil, file.hasContentFile { try writing.setContentTime(of: record) }
        try db.writeAttributes(of: record)
        // An attribute that has not changed is not sent.
        var fields: ItemFields = []
        if record.permissions != before.permissions { fields.insert(.permissions) }
        if record.owner != before.owner || record.group != before.group { fields.insert(.ownership) }
        if changes.modifiedAt != nil, record.modifiedAt != before.modifiedAt { fields.insert(.contentModificationDate) }
        if !fields.isEmpty { try mark(fields, of: number) }
        // Setting the date has changed the content stamp in the row, too.
        return changes.modifiedAt == nil ? record : try inode(number)
    }

    /// Sets an extended attribute.
    ///
    /// - Parameter name: its key (``ExtendedAttributeName``).
    /// - Throws: ``LocalObstacle``: EEXIST, ENODATA, EPERM where Linux keeps none, EINVAL for a wrong ACL.
    package func setExtendedAttribute(
        _ name: String, of number: InodeNumber, to value: [UInt8], mustBeNew: Bool, mustExist: Bool,
        caller: LocalCaller
    ) throws {
        try checkAttribute(name, of: number)
        let exists =
            try db.one(
                "SELECT EXISTS (SELECT 1 FROM extendedAttribute WHERE inode = ? AND name = ?)",
                [number.rawValue, name],
                { $0[0] as Bool }) ?? false
        if mustBeNew, exists { throw LocalObstacle.refused(.fileExists) }
        if mustExist, !exists { throw LocalObstacle.refused(.noData) }
        try db.setExtendedAttribute(name, of: number, to: value)
        try attributesChanged(of: number)
        if name == AccessControlList.accessKey { try access.accessListWasSet(value, of: number, caller: caller) }
    }

    /// - Throws: ``LocalObstacle``: ENODATA.
    package func removeExtendedAttribute(_ name: String, of number: InodeNumber) throws {
        try checkAttribute(name, of: number)
        guard try db.removeExtendedAttribute(name, of: number) else { throw LocalObstacle.refused(.noData) }
        try attributesChanged(of: number)
    }

    private func checkAttribute(_ name: String, of number: InodeNumber) throws {
        let file = try changeable(number)
        switch file.inode.kind {
        case .file, .directory: break
        case .symbolicLink: throw LocalObstacle.refused(.notPermitted)
        case .fifo, .characterDevice, .blockDevice, .socket:
            guard !ExtendedAttributeName.isOfUser(name) else { throw LocalObstacle.refused(.notPermitted) }
        }
        try checkAllowsWriting(file)
    }

    /// An item that may not be written may not be changed in any other way.
    private func checkAllowsWriting(_ file: ChangeableInode) throws {
        guard file.allowsWriting else { throw LocalObstacle.refused(.notPermitted) }
    }

    private func attributesChanged(of number: InodeNumber) throws {
        try setChangeTime(of: number)
        try mark(.extendedAttributes, of: number)
    }

}
