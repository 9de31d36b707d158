import FileNames
import FileProvider
import Syscalls
import SystemPackage

/// Converts files to items: identifiers, versions, attributes.
///
/// ``Folder/identifier(of:named:parent:)`` describes identifiers. The birth time ensures that an identifier is not
/// reused; without one it is the inode number alone. For a file system below the folder its mark is appended
/// (``FolderMounts/mark(of:)``).
struct FolderItems: Sendable {
    let rootDevice: UInt64
    let mounts: FolderMounts
    let capabilities: ItemCapabilities

    /// - Returns: nil for FIFOs, sockets, devices and hidden files.
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
            extendedAttributes: kind == .symbolicLink ? nil : Self.attributes(of: name, in: directory),
            trashDate: parent == .trashContainer ? TrashInformation.date(of: name, in: directory) : nil)
    }

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

    /// A directory whose file system is away: nothing but that it is there is told of it.
    func away(_ known: FolderMounts.AwayDirectory) -> FileProviderItem {
        FileProviderItem(
            itemIdentifier: known.identifier, parentItemIdentifier: known.parent, filename: known.name,
            kind: .directory,
            itemVersion: ItemVersion(contentVersion: [], metadataVersion: []), capabilities: capabilities)
    }

    /// Identifies a file, independent of its name and of the number of its links.
    func file(_ status: FileStatus) -> String {
        var text = String(status.inode, radix: 16)
        if let birth = status.birth {
            let nanoseconds = birth.seconds &* 1_000_000_000 &+ birth.nanoseconds
            text += "-" + String(UInt64(bitPattern: nanoseconds), radix: 16)
        }
        if status.device != rootDevice { text += "@" + mounts.mark(of: status.device) }
        return text
    }

    static func file(of identifier: ItemIdentifier) -> String {
        String(identifier.rawValue.prefix { $0 != "+" })
    }

    /// Whether a file is on a file system below the folder.
    static func isOnMount(_ identifier: ItemIdentifier) -> Bool { identifier.rawValue.utf8.contains(UInt8(ascii: "@")) }

    /// Whether this provider has assigned an identifier; the system assigns temporary ones.
    static func isIdentifier(_ identifier: ItemIdentifier) -> Bool {
        identifier.rawValue.utf8.allSatisfy { "0123456789abcdef-+@".utf8.contains($0) }
    }

    static func identifier(_ file: String, link: Int) -> ItemIdentifier {
        ItemIdentifier(link == 0 ? file : file + "+" + String(link, radix: 16))
    }

    func isFile(_ status: FileStatus, of identifier: ItemIdentifier) -> Bool {
        Self.file(of: identifier) == file(status)
    }

    /// The metadata version of a file with several hard links ends with their number (``linkCount(of:)``).
    static func version(of status: FileStatus) -> ItemVersion {
        let links = status.kind == .directory || status.linkCount < 2 ? "" : ".\(status.linkCount)"
        return ItemVersion(
            contentVersion: "\(status.size).\(status.modified.seconds).\(status.modified.nanoseconds)",
            metadataVersion: "\(status.changed.seconds).\(status.changed.nanoseconds)\(links)")
    }

    /// Whether the system has a version as one whose content is to be compared (``ProviderFeatures/contentVersionsMayRepeat``).
    static func isDoubted(_ version: ItemVersion) -> Bool { version.metadataVersion.first == UInt8(ascii: "?") }

    /// The change time that a file had with a version; nil if the system has marked the version.
    static func changeTime(of version: ItemVersion) -> FileTimestamp? {
        let parts = version.metadataVersion.split(separator: UInt8(ascii: "."))
        guard parts.count > 1, let seconds = Int64(String(decoding: parts[0], as: UTF8.self)),
            let nanoseconds = Int64(String(decoding: parts[1], as: UTF8.self))
        else { return nil }
        return FileTimestamp(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// The number of hard links of a file when it had a version, which may begin with a mark of the system's.
    static func linkCount(of version: ItemVersion) -> UInt32 {
        let parts = version.metadataVersion.split(separator: UInt8(ascii: "."))
        return parts.count > 2 ? UInt32(String(decoding: parts[2], as: UTF8.self)) ?? 1 : 1
    }
}

extension FileTimestamp {
    init(_ moment: FileMoment) {
        self.init(seconds: moment.seconds, nanoseconds: moment.nanoseconds)
    }
}
