import FUSE
import FileProvider
import Volume

extension FileAttributes {
    /// The volume's attributes as the kernel wants them.
    init(_ attributes: Attributes) {
        self.init(
            node: NodeID(rawValue: attributes.node), kind: FileKind(attributes.kind),
            permissions: UInt32(attributes.permissions), size: UInt64(max(0, attributes.size)),
            blocks: UInt64(max(0, attributes.blocks)), linkCount: UInt32(clamping: attributes.linkCount),
            owner: attributes.owner, group: attributes.group, accessTime: FileTime(attributes.modifiedAt),
            modificationTime: FileTime(attributes.modifiedAt), changeTime: FileTime(attributes.changedAt))
    }
}

extension FileTime {
    init(_ time: FileTimestamp) {
        self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}

extension FileKind {
    init(_ kind: ItemKind) {
        self =
            switch kind {
            case .file: .regular
            case .directory: .directory
            case .symbolicLink: .symbolicLink
            }
    }
}
