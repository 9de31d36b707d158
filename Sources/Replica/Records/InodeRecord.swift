import FileProvider

/// How much of an item's content is here: a file's bytes, a directory's listing.
package enum ContentState: Int, Hashable, Sendable {
    case dataless = 0
    /// Some ranges of a file; the first pages of a directory that is being listed.
    case partial = 1
    case materialized = 2

    /// The name that users, xattrs and JSON see.
    package var name: String {
        switch self {
        case .dataless: "dataless"
        case .partial: "partial"
        case .materialized: "materialized"
        }
    }
}

/// An inode: the local side of an item's metadata, as `stat` shows it.
package struct InodeRecord: Hashable, Sendable {
    package var number: InodeNumber
    package var kind: InodeKind
    /// The length of a file or of a link's target in bytes.
    package var size: Int64
    /// The lower twelve bits of the mode; `nil` when the remote reports none and it was not changed here.
    package var permissions: UInt16?
    /// `nil`: the user that runs the daemon.
    package var owner: UInt32?
    package var group: UInt32?
    /// How many items are this inode; 0 once it has no name and lives only as long as a process has it open.
    package var linkCount: Int
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    package var createdAt: FileTimestamp
    /// When it was read last, as a process said; `nil`: like ``modifiedAt``.
    package var accessedAt: FileTimestamp?
    package var device: UInt32
    /// How many of a directory's entries are directories, as far as they are known.
    package var subdirectories: Int
    package var content: ContentState
    /// The version that the bytes here are of.
    package var contentVersion: [UInt8]
    /// Changes whenever the local content is begun anew, so that a transfer that lost its file cannot record anything.
    package var contentGeneration: Int64
    package var localBytes: Int64
    /// For a file that may be being written: what its content file's stamp was when it was compared last.
    package var contentStamp: Int64?
    /// Whether the content file takes another number of blocks than its size fills, such as one with holes: how many is
    /// then asked of the file.
    package var hasUnusualAllocation = false
}

extension InodeRecord {
    /// How much of the content is here, as users see it. A transfer that has recorded nothing yet, or has failed, leaves a
    /// content file behind for the processes that have the file open, and none of the content.
    package var shownContent: ContentState {
        kind == .file && content == .partial && localBytes == 0 && size > 0 ? .dataless : content
    }

    /// The change time after its content file was written: never an earlier one.
    package func changeTime(afterWritingAt time: FileTimestamp) -> FileTimestamp {
        max(time, Self.time(time, after: changedAt))
    }

    /// The modification time after its content file was written. Writing returns from a time in the future that a program has set.
    package func modificationTime(afterWritingAt time: FileTimestamp) -> FileTimestamp {
        let lag = modifiedAt.nanosecondsSince1970.saturatingSubtract(time.nanosecondsSince1970)
        guard 0 < lag, lag < Self.longestTick else { return time }
        return Self.time(time, after: modifiedAt)
    }

    /// The longest tick of the kernel's coarse clock, in nanoseconds.
    private static let longestTick: Int64 = 10_000_000

    /// A time of the content file as one after `recorded`.
    ///
    /// The kernel takes the content file's times from a clock that ticks every few milliseconds, and so they may lie before
    /// a change that was recorded here just now. They must still be seen as times after it: a little later, in the
    /// order of the content file's times.
    private static func time(_ time: FileTimestamp, after recorded: FileTimestamp) -> FileTimestamp {
        let lead = max(0, time.nanosecondsSince1970 &- recorded.nanosecondsSince1970 &+ longestTick)
        let (following, overflow) = recorded.nanosecondsSince1970.addingReportingOverflow(
            1 + min(lead, longestTick) / 1000)
        return overflow ? time : FileTimestamp(nanosecondsSince1970: following)
    }
}
