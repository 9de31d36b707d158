import FileNames
import FileProvider
import Syscalls
import SystemPackage

/// How files become items: identifiers, versions, attributes.
///
/// What an identifier is made of is said at ``Folder/identifier(of:named:parent:)``. The birth time sees to it that none is
/// given twice; where the file system keeps none it is the inode number alone. The device comes with it where it is not
/// the root's.
struct FolderItems: Sendable {
    let rootDevice: UInt64
    /// What may be done with every item.
    let capabilities: ItemCapabilities

    /// - Returns: nil for what is no item: FIFOs, sockets and devices, and what is on its way in or out.
    func item(
        _ identifier: ItemIdentifier, named name: String, in directory: FileDescriptor, parent: ItemIdentifier,
        status: FileStatus
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
            itemIdentifier: identifier, parentItemIdentifier: parent,
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

    /// Which file it is, whatever it is called and however many names it has.
    func file(_ status: FileStatus) -> String {
        var text = String(status.inode, radix: 16)
        if let birth = status.birth {
            let nanoseconds = birth.seconds &* 1_000_000_000 &+ birth.nanoseconds
            text += "-" + String(UInt64(bitPattern: nanoseconds), radix: 16)
        }
        if status.device != rootDevice { text += "@" + String(status.device, radix: 16) }
        return text
    }

    /// Which file an identifier means. (Identifiers of older versions have a digest of a place behind it.)
    static func file(of identifier: ItemIdentifier) -> String {
        String(identifier.rawValue.prefix { $0 != "+" })
    }

    /// Whether an identifier is of this provider's making: the system's own name items that have none.
    static func isIdentifier(_ identifier: ItemIdentifier) -> Bool {
        identifier.rawValue.utf8.allSatisfy { "0123456789abcdef-+@".utf8.contains($0) }
    }

    /// The identifier of one of a file's names.
    static func identifier(_ file: String, link: Int) -> ItemIdentifier {
        ItemIdentifier(link == 0 ? file : file + "+" + String(link, radix: 16))
    }

    func isFile(_ status: FileStatus, of identifier: ItemIdentifier) -> Bool {
        Self.file(of: identifier) == file(status)
    }

    static func version(of status: FileStatus) -> ItemVersion {
        ItemVersion(
            contentVersion: "\(status.size).\(status.modified.seconds).\(status.modified.nanoseconds)",
            metadataVersion: "\(status.changed.seconds).\(status.changed.nanoseconds)")
    }
}

extension FileTimestamp {
    init(_ moment: FileMoment) {
        self.init(seconds: moment.seconds, nanoseconds: moment.nanoseconds)
    }
}
