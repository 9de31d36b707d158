import FileNames
import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage

/// The amount of data that was imported from a folder.
package struct ImportSummary: Hashable, Sendable {
    package var items = 0
    package var bytes: Int64 = 0
}

/// Makes a folder's files the content of a new replica, without changing the folder: content files get their bytes by one
/// more name of the same file, or, where that cannot be, by a copy that is compared. Everything is to be offered to the
/// provider, which may have it already. A folder of kept data is taken back as it was kept.
///
/// ``TakenFolder`` removes what was taken, once the replica is a domain's.
package struct Importing {
    private let replica: Replica
    private let folder: FilePath
    /// Where the files are: below a folder of kept data, else the folder itself.
    private let files: FilePath
    private let manifest: ManifestReader?
    private let device: UInt64
    /// Whether the folder's files stay, and so must not be the content.
    private let isCopying: Bool
    private var summary = ImportSummary()
    /// The inodes of kept items with several names, by the manifest's number.
    private var links: [Int64: InodeNumber] = [:]
    private var movedItems: [(row: Int64, directory: String)] = []
    private var trashedItems: [(row: Int64, directory: String)] = []
    private var isCompleteAtRoot = true
    private static let batch = 500

    /// - Parameters:
    ///   - replica: new and empty.
    ///   - isCopying: whether the folder's files stay: they are copied, because a later write to one must not change the content.
    /// - Throws: `Errno` for a folder that cannot be read, or is none.
    package init(_ replica: Replica, from folder: FilePath, isCopying: Bool = false) throws {
        self.isCopying = isCopying
        self.replica = replica
        self.folder = folder
        manifest = try ManifestReader(in: folder)
        files = manifest == nil ? folder : folder.appending(Manifest.files)
        let status = try FileStatus(at: files)
        guard status.kind == .directory else { throw Errno.notDirectory }
        device = status.device
    }

    /// - Parameter progress: called now and then with what was taken in up to now.
    /// - Throws: ``TakingError`` for what cannot be taken; POSIX errors. The folder is as it was then.
    package mutating func run(progress: (ImportSummary) -> Void) throws -> ImportSummary {
        try replica.database.write { db in
            try db.run(
                "INSERT INTO reimport (inode, requestedAt) VALUES (\(inode: .root), ?)",
                [FileTimestamp.now.nanosecondsSince1970])
        }
        if let manifest { try takeManifest(manifest, progress) }
        try takeTree(progress)
        let (total, isComplete) = (summary.items, isCompleteAtRoot)
        try replica.database.write { db in
            try db.run("UPDATE reimport SET total = ?", [total])
            // The root's entries are here; those of the remote's that are not come by comparing.
            if isComplete {
                try db.makeListed(.root, comparison: .needed)
            }
        }
        return summary
    }

    // MARK: - A manifest

    private mutating func takeManifest(_ manifest: ManifestReader, _ progress: (ImportSummary) -> Void) throws {
        isCompleteAtRoot = manifest.header.keep != "dirty"
        var waiting: [Manifest.Item] = []
        var removed: [Manifest.Removed] = []
        // Errors of the database pass through the reader.
        try withoutActuallyEscaping({ (items: [Manifest.Item]) in try insert(items) }) { insert in
            try manifest.read(
                items: { item in
                    waiting.append(item)
                    guard waiting.count >= Self.batch else { return }
                    try insert(waiting)
                    waiting = []
                }, removed: { removed.append($0) })
            try insert(waiting)
        }
        progress(summary)
        let (moved, trashed, gone, contents) = (movedItems, trashedItems, removed, replica.contents)
        try replica.database.write { db in
            for (row, path) in trashed {
                guard let directory = try db.inode(at: path) else { continue }
                try db.placeTrashed(row, from: directory, contents: contents)
            }
            for (row, path) in moved {
                guard let directory = try db.inode(at: path) else { continue }
                try db.setBaseParent(of: row, to: db.providerName(of: directory))
            }
            for item in gone { try db.insertRemoved(item) }
        }
    }

    private mutating func insert(_ items: [Manifest.Item]) throws {
        var (links, moved) = (links, movedItems)
        for item in items {
            guard let place = Keeping.place(item.path, in: folder) else {
                throw TakingError(description: "the manifest names '\(item.path)', which is no path in the folder")
            }
            if item.trashedAt != nil {
                let contents = replica.contents
                let row = try replica.database.write { db in
                    try db.insertTrashed(item, contents: contents) { name, files in
                        try db.insertKept(item, as: nil, named: name, in: files).1
                    }
                }
                if let row { trashedItems.append((row, item.remoteDirectory ?? "")) }
                continue
            }
            // The present state of the file counts, not the one when it was kept.
            let status = try? FileStatus(at: place)
            let isFile = item.kind == InodeKind.file.rawValue
            var item = item
            if isFile {
                let isHere = status?.kind == .regular
                if item.isHere, !isHere, item.identifier == nil { continue }
                if item.isHere, !isHere { item.changedFields &= ~ItemFields.contents.rawValue }
                if let status, isHere {
                    if !(item.isHere && item.isAsKept(status)) {
                        item.changedFields |= ItemFields([.contents, .contentModificationDate]).rawValue
                        item.size = status.size
                        item.modified = FileTimestamp(status.modified).nanosecondsSince1970
                    }
                }
                item.isHere = isHere
            }
            var linked = item.link.flatMap { links[$0] }
            if let number = linked, isFile, item.isHere,
                try !FileTaking.isSame(place, replica.contents.path(of: number))
            {
                // This name has been given another file since.
                linked = nil
                item.link = nil
                item.changedFields |= ItemFields([.contents, .contentModificationDate]).rawValue
            }
            let kept = item
            let (number, row) = try replica.database.write { db in try db.insertKept(kept, as: linked) }
            guard let number else { continue }
            if let link = item.link { links[link] = number }
            if let directory = item.remoteDirectory, let row { moved.append((row, directory)) }
            summary.items += 1
            if isFile, item.isHere, linked == nil { try takeContent(of: number, at: place, size: item.size) }
        }
        (self.links, movedItems) = (links, moved)
    }

    // MARK: - A tree

    /// Takes in what no manifest told of.
    private mutating func takeTree(_ progress: (ImportSummary) -> Void) throws {
        // What was added to a directory that stays on this machine stays with it.
        var waiting: [(place: FilePath, number: InodeNumber, isExcluded: Bool)] = [(files, .root, false)]
        while let (place, number, isExcluded) = waiting.popLast() {
            let directory = try FileDescriptor.openDirectory(place)
            defer { try? directory.close() }
            for bytes in try directory.names() {
                let name = FileNameText.text(of: bytes)
                guard let component = FilePath.Component(fileNamed: name) else { continue }
                let child = place.appending(component)
                let status = try FileStatus(of: name, in: directory)
                if let known = try replica.database.item(named: name, in: number) {
                    guard known.inode.kind == .directory, status.kind == .directory else { continue }
                    waiting.append((child, known.inode.number, known.isExcluded))
                    continue
                }
                guard status.device == device else {
                    throw TakingError(description: "'\(child)' is another file system, mounted there")
                }
                let made = try insert(name, status, in: number, directory, at: child, isExcluded: isExcluded)
                summary.items += 1
                if status.kind == .directory { waiting.append((child, made, isExcluded)) }
                if summary.items % 256 == 0 { progress(summary) }
            }
        }
        progress(summary)
    }

    private mutating func insert(
        _ name: String, _ status: FileStatus, in parent: InodeNumber, _ directory: FileDescriptor, at place: FilePath,
        isExcluded: Bool
    ) throws -> InodeNumber {
        var target: String?
        if status.kind == .symbolicLink {
            target = FileNameText.text(of: try directory.linkTarget(named: name))
        }
        let kind = try Self.kind(of: status, at: place)
        let attributes =
            kind == .symbolicLink ? [:] : directory.extendedAttributes(named: name, where: ExtendedAttributeName.isKept)
        let item = Manifest.Item(
            path: name, kind: kind.rawValue,
            size: kind == .file ? status.size : Int64(target.map(FileNameText.byteCount) ?? 0), isHere: true,
            identifier: nil,
            changedFields: ItemFields.ofNewItem(kind).rawValue, heldFields: 0,
            isExcluded: isExcluded || kind.itemKind == nil,
            permissions: status.permissions, owner: status.owner, group: status.group,
            modified: FileTimestamp(status.modified).nanosecondsSince1970,
            created: FileTimestamp(status.birth ?? status.modified).nanosecondsSince1970, linkTarget: target,
            attributes: attributes.isEmpty
                ? nil
                : Dictionary(
                    attributes.map { (ExtendedAttributeName.key(of: $0), Data($1)) },
                    uniquingKeysWith: { first, _ in first }))
        let (number, _) = try replica.database.write { db in try db.insertKept(item, as: nil, named: name, in: parent) }
        guard let number else { throw TakingError(description: "'\(place)' cannot be taken in") }
        if kind == .file { try takeContent(of: number, at: place, size: status.size) }
        return number
    }

    private static func kind(of status: FileStatus, at place: FilePath) throws -> InodeKind {
        switch status.kind {
        case .regular: .file
        case .directory: .directory
        case .symbolicLink: .symbolicLink
        case .special: throw TakingError(description: "'\(place)' is a FIFO, socket or device, which no remote takes")
        }
    }

    /// A file that has other names, or another owner, is copied: no other process may write it from now on.
    private mutating func takeContent(of number: InodeNumber, at place: FilePath, size: Int64) throws {
        let status = try FileStatus(at: place)
        let isOurs = status.owner == Machine.userIdentifier || Machine.userIdentifier == 0
        let content = replica.contents.path(of: number)
        guard isCopying || !FileTaking.isBeingWritten(place) else {
            throw TakingError(
                description: "'\(place)' is open for writing: end the program that writes it, or use --copy")
        }
        try FileTaking.take(place, to: content, mayLink: status.linkCount == 1 && isOurs && !isCopying)
        let taken = try FileStatus(at: content)
        guard taken.size == size else { throw TakingError(description: "'\(place)' is being written") }
        if ContentSize.isUnusual(taken.allocated, for: taken.size) {
            try replica.database.write { db in
                try db.noteUnusualAllocation(of: number)
            }
        }
        summary.bytes = summary.bytes.saturatingAdd(size)
    }
}

extension Database {
    /// Makes rows of a kept or imported item.
    ///
    /// - Returns: its inode and its row; nil for one whose directory is not there.
    fileprivate func insertKept(
        _ item: Manifest.Item, as linked: InodeNumber?, named name: String? = nil, in directory: InodeNumber? = nil
    ) throws -> (InodeNumber?, Int64?) {
        var names = item.path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        let last = names.popLast() ?? item.path
        guard let kind = InodeKind(rawValue: item.kind), let parent = try directory ?? inode(at: names),
            try !hasItem(named: name ?? last, in: parent)
        else { return (nil, nil) }
        // A directory that stays on this machine has no listing on the remote.
        let isListed = kind == .directory && item.isExcluded
        let isHere = item.isHere || isListed || kind != .file && kind != .directory
        let number = try linked ?? insertInode(of: item, kind, isHere: isHere)
        if linked != nil {
            try link(number, at: FileTimestamp.now)
        }
        return (
            number,
            try insertImported(
                item, kind, of: number, in: parent, named: name ?? last, remoteName: item.remoteName ?? last)
        )
    }

    /// Queues the deletion of an item that was removed before the data was kept.
    fileprivate func insertRemoved(_ item: Manifest.Removed) throws {
        var names = item.path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        guard let name = names.popLast(), let directory = try inode(at: names),
            let parent = try providerName(of: directory)
        else { return }
        try queueDeletion(
            PendingDeletion.token(ofDeletion: ItemRecord.newTemplate()), InodeKind(rawValue: item.kind) ?? .file,
            in: parent, named: name,
            version: ItemVersion(
                contentVersion: [UInt8](item.contentVersion), metadataVersion: [UInt8](item.metadataVersion)),
            isToBeFound: true, at: FileTimestamp.now)
    }

    fileprivate func inode(at path: String) throws -> InodeNumber? {
        try inode(at: path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) })
    }

    private func inode(at names: [String]) throws -> InodeNumber? {
        var number = InodeNumber.root
        for name in names {
            guard let item = try item(named: name, in: number) else { return nil }
            number = item.inode.number
        }
        return number
    }
}
