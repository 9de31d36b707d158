import FileNames
import FileProvider
import Syscalls
import SystemPackage

/// How files become items: identifiers, versions, attributes.
///
/// An identifier is the inode number and the birth time, so it survives renames and is never given twice. Where the file
/// system keeps no birth time it is the inode number alone. The device comes with it where it is not the root's. A file
/// with several hard links is several items here, and each carries a digest of where it lies: it changes its identifier
/// when it is renamed.
struct FolderItems: Sendable {
    let rootDevice: UInt64
    /// What may be done with every item.
    let capabilities: ItemCapabilities

    /// - Returns: nil for what is no item: FIFOs, sockets and devices, and what is on its way in or out.
    func item(
        named name: String, in directory: FileDescriptor, parent: ItemIdentifier, status: FileStatus
    ) -> FileProviderItem? {
        if HiddenName.isOne(name) { return nil }
        let kind: ItemKind
        switch status.kind {
        case .regular: kind = .file
        case .directory: kind = .directory
        case .symbolicLink: kind = .symbolicLink
        case .special: return nil
        }
        var target: String?
        if kind == .symbolicLink {
            guard let bytes = try? directory.linkTarget(named: name) else { return nil }
            target = FileNameText.text(of: bytes)
        }
        return FileProviderItem(
            itemIdentifier: identifier(of: status, named: name, parent: parent), parentItemIdentifier: parent,
            filename: name, kind: kind, itemVersion: Self.version(of: status), capabilities: capabilities,
            documentSize: status.size, creationDate: status.birth.map(FileTimestamp.init),
            contentModificationDate: FileTimestamp(status.modified), permissions: status.permissions,
            owner: status.owner, group: status.group, symlinkTargetPath: target,
            extendedAttributes: kind == .symbolicLink ? nil : Self.attributes(of: name, in: directory))
    }

    /// The extended attributes that an item has, by their keys.
    private static func attributes(of name: String, in directory: FileDescriptor) -> [String: [UInt8]] {
        let found = directory.extendedAttributes(named: name, where: ExtendedAttributeName.isKept)
        return Dictionary(
            found.map { (ExtendedAttributeName.key(of: $0), $1) }, uniquingKeysWith: { first, _ in first })
    }

    func root(status: FileStatus) -> FileProviderItem {
        FileProviderItem(
            itemIdentifier: .rootContainer, parentItemIdentifier: .rootContainer, filename: "/", kind: .directory,
            itemVersion: Self.version(of: status), capabilities: capabilities, documentSize: status.size,
            creationDate: status.birth.map(FileTimestamp.init),
            contentModificationDate: FileTimestamp(status.modified), permissions: status.permissions,
            owner: status.owner, group: status.group)
    }

    func identifier(of status: FileStatus, named name: String, parent: ItemIdentifier) -> ItemIdentifier {
        var text = String(status.inode, radix: 16)
        if let birth = status.birth {
            let nanoseconds = birth.seconds &* 1_000_000_000 &+ birth.nanoseconds
            text += "-" + String(UInt64(bitPattern: nanoseconds), radix: 16)
        }
        if status.device != rootDevice { text += "@" + String(status.device, radix: 16) }
        if status.kind == .regular, status.linkCount > 1 {
            text += "+" + String(Self.digest(parent.rawValue + "/" + name), radix: 16)
        }
        return ItemIdentifier(text)
    }

    static func version(of status: FileStatus) -> ItemVersion {
        ItemVersion(
            contentVersion: "\(status.size).\(status.modified.seconds).\(status.modified.nanoseconds)",
            metadataVersion: "\(status.changed.seconds).\(status.changed.nanoseconds)")
    }

    /// FNV-1a: the same in every run, which Swift's own hash is not.
    private static func digest(_ text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }
}

extension FileTimestamp {
    init(_ moment: FileMoment) {
        self.init(seconds: moment.seconds, nanoseconds: moment.nanoseconds)
    }
}
