import FileProvider
import Syscalls

/// The attributes that `setattr` changes; nil leaves one unchanged.
package struct LocalAttributes: Hashable, Sendable {
    package enum Time: Hashable, Sendable {
        case now
        case at(FileTimestamp)
    }

    /// The lower twelve bits of the mode.
    package var permissions: UInt16?
    package var owner: UInt32?
    package var group: UInt32?
    package var size: Int64?
    package var accessedAt: Time?
    package var modifiedAt: Time?

    package init(
        permissions: UInt16? = nil, owner: UInt32? = nil, group: UInt32? = nil, size: Int64? = nil,
        accessedAt: Time? = nil, modifiedAt: Time? = nil
    ) {
        (self.permissions, self.owner, self.group) = (permissions, owner, group)
        (self.size, self.accessedAt, self.modifiedAt) = (size, accessedAt, modifiedAt)
    }

    /// Whether more is changed than when it was read.
    var changesWhatTheRemoteHas: Bool { permissions != nil || owner != nil || group != nil || modifiedAt != nil }
}

package struct LocalCaller: Hashable, Sendable {
    package var user: UInt32
    package var group: UInt32
    /// The process, to read its supplementary groups; nil where there is none.
    package var process: Int32?
    /// The permissions that it takes from what it makes, where no default ACL decides.
    package var umask: UInt16

    package init(user: UInt32, group: UInt32, process: Int32? = nil, umask: UInt16 = 0) {
        self.umask = umask
        self.user = user
        self.group = group
        self.process = process
    }

    /// Whether a file's group is one of the caller's.
    func belongs(to other: UInt32?) -> Bool {
        guard let other, other != group, !isPrivileged else { return true }
        return process.map { ProcessStatus.supplementaryGroups(of: $0).contains(other) } ?? true
    }

    var isPrivileged: Bool { user == 0 }
}

extension InodeRecord {
    /// Sets attributes, but not the size.
    mutating func setAttributes(to changes: LocalAttributes, caller: LocalCaller, at now: FileTimestamp) {
        func moment(_ time: LocalAttributes.Time) -> FileTimestamp {
            switch time {
            case .now: now
            case .at(let time): time
            }
        }
        if changes.owner != nil || changes.group != nil {
            let cleared = permissions(afterChangeBy: caller)
            owner = changes.owner ?? owner
            group = changes.group ?? group
            if let cleared { permissions = cleared }
        }
        if let set = changes.permissions { permissions = set & 0o7777 }
        if let time = changes.modifiedAt { modifiedAt = moment(time) }
        if let time = changes.accessedAt { accessedAt = moment(time) }
        changedAt = now
    }

    /// The permissions without the bits that a change of owner or content takes; nil when there is nothing to take.
    ///
    /// The set-group-ID bit of a file that its group may not execute goes only where a stranger to the group does it.
    func permissions(afterChangeBy caller: LocalCaller) -> UInt16? {
        guard kind != .directory, let permissions, permissions & 0o6000 != 0 else {
            return nil
        }
        var cleared = permissions & ~0o4000
        if permissions & 0o2000 != 0, permissions & 0o0010 != 0 || !caller.belongs(to: group) {
            cleared &= ~0o2000
        }
        return cleared == permissions ? nil : cleared
    }
}
