import FileNames
import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// A folder whose files a replica has taken in: what the replica has goes from it. Everything else stays.
package struct TakenFolder {
    private let replica: Replica
    private let folder: FilePath
    private var left: [String] = []
    /// Called with each item that is what the replica has, before it is removed. For tests that write it then.
    var compared: (FilePath) throws -> Void = { _ in }

    package init(_ replica: Replica, _ folder: FilePath) {
        self.replica = replica
        self.folder = folder
    }

    /// Removes from the folder what the replica has. What was cut short goes on from anywhere.
    ///
    /// - Parameter keepsFolder: whether the folder itself stays.
    /// - Returns: what stays, because it changed since, or cannot be removed.
    package mutating func clear(keepsFolder: Bool) throws -> [String] {
        guard (try? FileStatus(at: folder))?.kind == .directory else { return [] }
        let manifest = try ManifestReader(in: folder)
        let files = manifest == nil ? folder : folder.appending(Manifest.files)
        if (try? FileStatus(at: files)) != nil { try clear(files, .root) }
        if manifest != nil, left.isEmpty {
            try? files.removeDirectory()
            try? folder.appending(Manifest.fileName).unlinkIfPresent()
        }
        try ownContents()
        if !keepsFolder, (try? folder.removeDirectory()) == nil {
            left += ((try? namesOfFolder()) ?? [])
                // Files that are not in the manifest belong to no domain.
                .filter { manifest == nil || !["trash", "recovered"].contains($0) }
                .map { folder.fileNameText + "/" + $0 }.filter { !left.contains($0) }
        }
        return left
    }

    private func namesOfFolder() throws -> [String] {
        let directory = try FileDescriptor.openDirectory(folder)
        defer { try? directory.close() }
        return try directory.names().map { FileNameText.text(of: $0) }
    }

    private mutating func clear(_ place: FilePath, _ number: InodeNumber) throws {
        let directory = try FileDescriptor.openDirectory(place)
        defer { try? directory.close() }
        for bytes in try directory.names() {
            let name = FileNameText.text(of: bytes)
            guard let component = FilePath.Component(fileNamed: name) else { continue }
            let child = place.appending(component)
            guard let status = try? FileStatus(of: name, in: directory) else { continue }
            guard let item = try replica.database.item(named: name, in: number),
                try isSame(status, item.inode, name, in: directory, at: child)
            else {
                left.append(child.fileNameText)
                continue
            }
            try compared(child)
            do {
                if status.kind == .regular, FileTaking.isBeingWritten(child) {
                    // Since it was taken. What is written from now on stays in the folder.
                    let content = replica.contents.path(of: item.inode.number)
                    try FileTaking.separate(content, size: item.inode.size)
                    left.append(child.fileNameText)
                } else if status.kind == .regular, try !isLinked(item.inode, status),
                    !isUnchanged(status, name, in: directory)
                {
                    // It was copied, and written while it was compared with the copy.
                    left.append(child.fileNameText)
                } else if status.kind == .directory {
                    try clear(child, item.inode.number)
                    try directory.removeDirectory(named: name)
                } else {
                    try directory.unlink(named: name)
                    if status.kind == .regular { try noteWriting(item.inode) }
                }
            } catch let error as Errno {
                guard error != .directoryNotEmpty else { continue }
                left.append(child.fileNameText)
                if status.kind == .regular { try separate(item.inode, from: status) }
            }
        }
    }

    private func isSame(
        _ status: FileStatus, _ inode: InodeRecord, _ name: String, in directory: FileDescriptor, at place: FilePath
    ) throws -> Bool {
        switch (status.kind, inode.kind) {
        case (.directory, .directory): true
        case (.symbolicLink, .symbolicLink):
            try replica.database.linkTarget(of: inode.number)
                == (try? directory.linkTarget(named: name)).map { FileNameText.text(of: $0) }
        case (.regular, .file):
            (try? FileTaking.isSame(place, replica.contents.path(of: inode.number))) ?? false
        default: false
        }
    }

    /// Whether a file and the content of an inode are one, so that what is written to it is written here.
    private func isLinked(_ inode: InodeRecord, _ status: FileStatus) throws(Errno) -> Bool {
        let own = try FileStatus(at: replica.contents.path(of: inode.number))
        return own.inode == status.inode && own.device == status.device
    }

    /// Whether a file was left alone since its status was looked up.
    private func isUnchanged(_ status: FileStatus, _ name: String, in directory: FileDescriptor) -> Bool {
        guard let now = try? FileStatus(of: name, in: directory) else { return false }
        return now.inode == status.inode && now.device == status.device && now.size == status.size
            && now.changed == status.changed
    }

    /// A file that was written after it was taken, and before it was only the replica's, is sent as it is.
    private func noteWriting(_ inode: InodeRecord) throws {
        let status = try FileStatus(at: replica.contents.path(of: inode.number))
        guard status.size != inode.size || status.modified != FileMoment(inode.modifiedAt.nanosecondsSince1970) else {
            return
        }
        _ = try replica.change(open: NothingOpen()) { try $0.contents.contentWasWritten(inode.number) }
    }

    /// A file that cannot be removed is no content of the replica's any more: others may write it.
    private func separate(_ inode: InodeRecord, from status: FileStatus) throws {
        guard try isLinked(inode, status) else { return }
        try FileTaking.separate(replica.contents.path(of: inode.number), size: inode.size)
    }

    /// The files are ours alone now.
    private func ownContents() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: replica.contents.directory.string) {
            guard let component = FilePath.Component(name) else { continue }
            let path = replica.contents.directory.appending(component)
            guard let status = try? FileStatus(at: path), status.linkCount == 1, status.permissions != 0o600 else {
                continue
            }
            try path.setPermissions(0o600)
        }
    }
}
