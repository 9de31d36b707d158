import FileNames
import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// The amount of data that was kept of a replica.
package struct KeptSummary: Hashable, Sendable {
    package var files = 0
    package var bytes: Int64 = 0
    package var items = 0
    /// What could not be kept: its path in the folder, and what it is, in words.
    package var notKept: [NotKept] = []

    package struct NotKept: Hashable, Sendable {
        package var path: String
        package var what: String
    }
}

/// The amount of data that would be lost with a replica.
package struct UnsyncedSummary: Hashable, Sendable {
    /// Items that the remote has not got all of, or that stay on this machine.
    package var items: Int
    /// Files that an earlier start set aside.
    package var recovered: Int
}

/// Keeps the data of a replica that is to be removed: a plain tree of its files, and a manifest that lets it be taken
/// back. The replica is only read; its content files get one more name where they lie on the same file system.
///
/// What lies in the trash goes to `trash`, what was set aside to `recovered`: they are no part of the manifest.
package struct Keeping {
    private let replica: Replica
    private let folder: FilePath
    private let onlyDirty: Bool
    private var summary = KeptSummary()
    /// The directories in which something is to be kept; nil for all.
    private var wanted: Set<Int64>?

    /// - Parameters:
    ///   - folder: is there and empty.
    ///   - onlyDirty: whether what the remote has goes.
    package init(_ replica: Replica, in folder: FilePath, onlyDirty: Bool) {
        self.replica = replica
        self.folder = folder
        self.onlyDirty = onlyDirty
    }

    /// Keeps everything, and puts it on the disk. The manifest comes last, under its name only when all is there.
    ///
    /// - Parameter progress: called after each item with what was kept up to now.
    package mutating func run(domain: String, source: String, progress: (KeptSummary) -> Void) throws -> KeptSummary {
        let files = folder.appending(Manifest.files)
        try files.makeDirectory()
        if onlyDirty { wanted = try replica.database.directoriesWithWork() }
        let part = folder.appending(Manifest.fileName + ".part")
        let writer = try ManifestWriter(
            at: part,
            Manifest.Header(
                format: Manifest.format, version: Manifest.version, domain: domain, source: source,
                keep: onlyDirty ? "dirty" : "downloaded"))
        try keep(.root, at: "", writer, progress)
        writer.beginRemoved()
        try keepDeletions(writer)
        try writer.finish()
        try keepRecovered()
        try keepItemsWithoutDirectory()
        let root = try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec])
        defer { try? root.close() }
        try root.syncFileSystem()
        try part.move(to: folder.appending(Manifest.fileName))
        try root.synchronize(asDirectory: true)
        return summary
    }

    private mutating func keep(
        _ top: InodeNumber, at topPath: String, _ writer: ManifestWriter, _ progress: (KeptSummary) -> Void
    ) throws {
        var waiting: [(number: InodeNumber, path: String, after: String)] = [(top, topPath, "")]
        while let (directory, path, after) = waiting.popLast() {
            let children = try replica.database.items(in: directory, after: after, limit: 256)
            if children.count == 256, let last = children.last { waiting.append((directory, path, last.name)) }
            for child in children {
                let name = Self.name(of: child)
                let childPath = path.isEmpty ? name : path + "/" + name
                if child.trashRole != .none {
                    try keepTrash(child, writer)
                    continue
                }
                guard try isWanted(child) else { continue }
                try keep(child, at: childPath, writer)
                summary.items += 1
                progress(summary)
                if child.inode.kind == .directory { waiting.append((child.inode.number, childPath, "")) }
            }
        }
    }

    private func isWanted(_ item: ItemRecord) throws -> Bool {
        guard onlyDirty else { return true }
        return item.hasWork || wanted?.contains(item.inode.number.rawValue) == true
    }

    private mutating func keep(_ item: ItemRecord, at path: String, _ writer: ManifestWriter) throws {
        guard let place = Self.place(path, in: folder) else { return }
        var isHere = false
        switch item.inode.kind {
        case .directory:
            try place.makeDirectory()
            isHere = item.inode.content == .materialized && !onlyDirty
        case .symbolicLink:
            isHere = try keepLink(item.inode.number, at: place)
        case .file:
            let isKept = !onlyDirty || item.hasContentWork
            if isKept, item.inode.content == .materialized {
                try keepContent(of: item.inode, at: place)
                isHere = true
            }
        case .fifo, .characterDevice, .blockDevice, .socket: break
        }
        var described = try replica.database.describeForManifest(item, at: path, isHere: isHere)
        if isHere, item.inode.kind == .file {
            described.keptModified = FileTimestamp(try FileStatus(at: place).modified).nanosecondsSince1970
        }
        try writer.add(described)
    }

    private mutating func keepContent(of inode: InodeRecord, at place: FilePath) throws {
        summary.files += 1
        summary.bytes = summary.bytes.saturatingAdd(inode.size)
        guard try replica.database.hasContentFile(inode.number) else {
            try FileDescriptor.open(
                place, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite
            ).close()
            return
        }
        try FileTaking.take(replica.contents.path(of: inode.number), to: place, mayLink: true)
    }

    /// Keeps the trash: its files as plain files, and in the manifest what is to be trashed on the remote. What lies beside `files` is
    /// on this machine alone, such as a file that `mv` has copied to `.Trash-UID` itself.
    private mutating func keepTrash(_ item: ItemRecord, _ writer: ManifestWriter) throws {
        guard item.trashRole == .top else { return }
        let trash = folder.appending("trash")
        let children = try replica.database.items(in: item.inode.number)
        for other in children where other.trashRole == .none {
            summary.items += try keepFiles(of: other, named: Self.name(of: other), in: trash)
        }
        for files in children where files.trashRole == .files {
            let owner = TrashDirectories.user(of: item.name) ?? Machine.userIdentifier
            for trashed in try replica.database.items(in: files.inode.number) {
                try keepFiles(of: trashed, named: Self.name(of: trashed), in: trash)
                guard let described = try replica.database.describeTrashing(of: trashed, in: owner) else { continue }
                try writer.add(described)
                summary.items += 1
            }
        }
    }

    private func keepDeletions(_ writer: ManifestWriter) throws {
        for deletion in try replica.database.pendingDeletions() {
            guard let parent = try replica.database.known(deletion.parent),
                let directory = try replica.database.path(of: parent.inode.number)
            else { continue }
            try writer.add(
                Manifest.Removed(
                    path: (directory + [deletion.name]).joined(separator: "/"), kind: deletion.kind.rawValue,
                    contentVersion: Data(deletion.version.contentVersion),
                    metadataVersion: Data(deletion.version.metadataVersion)))
        }
    }

    private mutating func keepRecovered() throws {
        let recovered = replica.contents.recovered
        guard try !FileManager.default.contentsOfDirectory(atPath: recovered.string).isEmpty else { return }
        var waiting = [(recovered, folder.appending("recovered"))]
        while let (source, destination) = waiting.popLast() {
            try destination.makeDirectory()
            let directory = try FileDescriptor.openDirectory(source)
            defer { try? directory.close() }
            for name in try directory.names() {
                guard let component = FilePath.Component(fileNamed: FileNameText.text(of: name)) else { continue }
                let (from, to) = (source.appending(component), destination.appending(component))
                switch try FileStatus(at: from).kind {
                // A database that was damaged lies in one of its own, and so does what had a path.
                case .directory: waiting.append((from, to))
                default:
                    try FileTaking.take(from, to: to, mayLink: true)
                    summary.files += 1
                    summary.bytes = summary.bytes.saturatingAdd(try FileStatus(at: to).size)
                }
            }
        }
    }

    /// Keeps in `recovered` what the tree does not hold: items that lie in no directory, and what is in them.
    private mutating func keepItemsWithoutDirectory() throws {
        for item in try replica.database.itemsWithoutDirectory() {
            summary.items += try keepFiles(of: item, named: Self.name(of: item), in: folder.appending("recovered"))
        }
    }

    /// Keeps the files and links at and below an item that is not in the manifest, in directories that are made for them, and the
    /// directories that the remote does not have. Another item may have been kept under its name.
    ///
    /// - Returns: how many were kept.
    @discardableResult
    private mutating func keepFiles(of top: ItemRecord, named name: String, in directory: FilePath) throws -> Int {
        guard let place = Self.freePlace(name, in: directory) else { return 0 }
        var kept = 0
        var waiting = [(item: top, place: place)]
        while let (item, place) = waiting.popLast() {
            switch item.inode.kind {
            case .directory:
                if item.identifier == nil || item.isExcluded {
                    try place.makeDirectories()
                    kept += 1
                }
                for child in try replica.database.items(in: item.inode.number) {
                    guard let place = Self.place(Self.name(of: child), in: place, below: nil) else { continue }
                    waiting.append((child, place))
                }
            case .symbolicLink where !onlyDirty || item.hasContentWork:
                try place.removingLastComponent().makeDirectories()
                if try keepLink(item.inode.number, at: place) { kept += 1 }
            case .file where item.inode.content == .materialized && (!onlyDirty || item.hasContentWork):
                try place.removingLastComponent().makeDirectories()
                try keepContent(of: item.inode, at: place)
                kept += 1
            case .fifo:
                try place.removingLastComponent().makeDirectories()
                do throws(Errno) {
                    try place.makePipe()
                    kept += 1
                } catch {
                    guard error != .noSpace else { throw error }
                    noteNotKept(place, "a FIFO, which cannot be made there: \(error)")
                }
            case .characterDevice, .blockDevice:
                noteNotKept(place, "a device (number \(item.inode.device)), which is not made outside of a mount")
            case .socket: noteNotKept(place, "a socket")
            case .symbolicLink, .file: break
            }
        }
        return kept
    }

    /// - Returns: false for a link of which the remote has not said what it points to.
    private mutating func keepLink(_ number: InodeNumber, at place: FilePath) throws -> Bool {
        guard let target = try replica.database.linkTarget(of: number), !target.isEmpty else {
            noteNotKept(place, "a link, and it is not known what it points to")
            return false
        }
        try place.makeLink(to: target)
        return true
    }

    private mutating func noteNotKept(_ place: FilePath, _ what: String) {
        var path = place
        _ = path.removePrefix(folder)
        summary.notKept.append(KeptSummary.NotKept(path: path.fileNameText, what: what))
    }

    /// The name that an item is kept under: one that has no name for now gets that on the remote with its number.
    private static func name(of item: ItemRecord) -> String {
        item.isHidden ? Displacement.name(item.base.name ?? "item", with: " (\(item.id))") : item.name
    }

    /// The path of a name in a folder, or of `name (2).ext` and so on where that is taken.
    private static func freePlace(_ name: String, in directory: FilePath) -> FilePath? {
        var number = 1
        while let place = place(
            number == 1 ? name : Displacement.decorated(name, number: number), in: directory, below: nil)
        {
            if (try? FileStatus(at: place)) == nil { return place }
            number += 1
        }
        return nil
    }

    /// A path of the manifest in the folder; nil for one that leads out of it.
    static func place(_ path: String, in folder: FilePath, below files: String? = Manifest.files) -> FilePath? {
        var place = files.map { folder.appending($0) } ?? folder
        for name in path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            let text = String(Substring(name))
            guard FileProviderItem.defect(ofFilename: text) == nil, let component = FilePath.Component(fileNamed: text),
                component.kind == .regular
            else { return nil }
            place.append(component)
        }
        return place
    }
}

extension FileMoment {
    init(_ nanoseconds: Int64) {
        let time = FileTimestamp(nanosecondsSince1970: nanoseconds)
        self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}

extension Manifest.Item {
    /// Whether a kept file has not been edited since.
    func isAsKept(_ status: FileStatus) -> Bool {
        guard status.kind == .regular, status.size == size else { return false }
        return [FileMoment(modified), beingRestored].contains(status.modified)
            || keptModified.map { status.modified == FileMoment($0) } == true
    }
}
