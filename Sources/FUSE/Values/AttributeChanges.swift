import CFUSEShim

/// The attributes that a SETATTR changes; nil leaves one unchanged.
package struct AttributeChanges: Hashable, Sendable {
    /// A time to set: the current time, or a given one.
    package enum Time: Hashable, Sendable {
        case now
        case at(FileTime)
    }

    /// Permissions, set-ID and sticky bits.
    package var permissions: UInt32?
    package var owner: UInt32?
    package var group: UInt32?
    package var size: UInt64?
    package var accessTime: Time?
    package var modificationTime: Time?

    init(_ change: fuseshim_change) {
        let valid = change.valid
        let values = change.attributes
        func has(_ flag: Int) -> Bool { Int(valid) & flag != 0 }
        if has(FUSESHIM_SET_MODE) { permissions = values.mode & 0o7777 }
        if has(FUSESHIM_SET_OWNER) { owner = values.owner }
        if has(FUSESHIM_SET_GROUP) { group = values.group }
        if has(FUSESHIM_SET_SIZE) { size = values.size }
        if has(FUSESHIM_SET_ACCESS_TIME_NOW) {
            accessTime = .now
        } else if has(FUSESHIM_SET_ACCESS_TIME) {
            accessTime = .at(FileTime(seconds: values.access_seconds, nanoseconds: Int64(values.access_nanoseconds)))
        }
        if has(FUSESHIM_SET_MODIFICATION_TIME_NOW) {
            modificationTime = .now
        } else if has(FUSESHIM_SET_MODIFICATION_TIME) {
            modificationTime = .at(
                FileTime(seconds: values.modification_seconds, nanoseconds: Int64(values.modification_nanoseconds)))
        }
    }
}
