import Control
import FileProvider
import Replica
import Sync
import Syscalls
import SystemPackage

/// Resolves paths in a mount to items by the database. The mount itself is not accessed, so that the daemon never
/// waits for itself and nothing is listed by accident.
struct PathResolver: Sendable {
    let host: DomainHost
    /// Where it was mounted when this was made.
    let mountpoint: String
    /// Whether directories on the path that have not been listed are listed; otherwise the resolution fails.
    var lists = false
    /// Whether a symbolic link that is the last component is followed, too.
    var followsLast = false
    /// Whether it is also followed for a slash behind it, as most system calls do, and not those that remove.
    var followsBeforeSlash = true

    /// The kernel's limit of symbolic links in one path.
    private static let mostLinks = 40

    init(host: DomainHost, lists: Bool = false, followsLast: Bool = false, followsBeforeSlash: Bool = true) {
        self.host = host
        mountpoint = host.place.fileNameText
        self.lists = lists
        self.followsLast = followsLast
        self.followsBeforeSlash = followsBeforeSlash
    }

    /// An inode on a path, and the name that led to it; nil for the root.
    private struct Step {
        var inode: InodeRecord
        var name: String?
    }

    /// The inode at an absolute path. Symbolic links are followed, as ``followsLast`` says also the last component.
    ///
    /// - Throws: `failed` if the item does not exist or is not known yet; the errors of listing.
    func inode(at path: String) async throws -> InodeRecord {
        guard let last = try await steps(to: path).last else {
            throw Self.noSuchItem(at: Self.withoutSlash(path))
        }
        return last.inode
    }

    /// The inodes from the root to an absolute path. With a slash at the end it is that of a directory.
    ///
    /// - Throws: as ``inode(at:)``.
    private func steps(to given: String) async throws -> [Step] {
        let path = Self.withoutSlash(given)
        let isDirectory = path.utf8.count < given.utf8.count
        let followsLast = self.followsLast || isDirectory && followsBeforeSlash
        var names = try Self.names(of: path, below: mountpoint)
        var walked = [Step(inode: try root())]
        var links = 0
        while !names.isEmpty {
            let name = names.removeFirst()
            if name.utf8.elementsEqual("..".utf8) {
                guard walked.last?.inode.kind == .directory else { throw Self.notDirectory(on: path) }
                if walked.count > 1 { walked.removeLast() }
                continue
            }
            guard let directory = walked.last?.inode else { break }
            let inode = try await child(name, of: directory, path)
            guard inode.kind == .symbolicLink, followsLast || !names.isEmpty else {
                walked.append(Step(inode: inode, name: name))
                continue
            }
            links += 1
            guard links <= Self.mostLinks, let target = try host.replica.database.linkTarget(of: inode.number) else {
                throw ControlError(.failed, "too many symbolic links", path: path)
            }
            if target.utf8.first == UInt8(ascii: "/") {
                guard Mountpoint.contains(mountpoint, target) else {
                    throw ControlError(.failed, "a symbolic link on the way leads out of the mount", path: path)
                }
                walked = [Step(inode: try root())]
                names = try Self.names(of: target, below: mountpoint) + names
            } else {
                names = Self.components(target[...]) + names
            }
        }
        if isDirectory, let last = walked.last?.inode, last.kind != .directory {
            throw ControlError(.failed, "not a directory", path: path)
        }
        return walked
    }

    /// A path as it is shown.
    static func withoutSlash(_ path: String) -> String {
        let slash = UInt8(ascii: "/")
        guard path.utf8.count > 1, path.utf8.last == slash else { return path }
        let end = path.utf8.lastIndex { $0 != slash } ?? path.utf8.startIndex
        return String(Substring(path.utf8[...end]))
    }

    /// The item at an absolute path: of a file with several names the one of this name.
    ///
    /// - Throws: as ``inode(at:)``.
    func item(at path: String) async throws -> ItemRecord {
        let steps = try await steps(to: path)
        let item: ItemRecord? =
            if let name = steps.last?.name, let directory = steps.dropLast().last {
                try host.replica.database.item(named: name, in: directory.inode.number)
            } else {
                try host.replica.database.item(ofInode: .root)
            }
        guard let item else { throw Self.noSuchItem(at: Self.withoutSlash(path)) }
        return item
    }

    /// Whether there is an item at an absolute path; nil where a directory on the path was not listed, or is a link.
    func existence(of path: String) -> Bool? {
        guard var names = try? Self.names(of: path, below: mountpoint)[...] else { return nil }
        var directory = InodeNumber.root
        while let name = names.popFirst() {
            guard let answer = try? host.replica.database.lookup(name, in: directory) else { return nil }
            guard let inode = answer.inode else { return answer.directory == .materialized ? false : nil }
            guard inode.kind == .directory || names.isEmpty else { return inode.kind == .symbolicLink ? nil : false }
            directory = inode.number
        }
        return true
    }

    /// The path of an inode in the mount; nil for one without a name.
    func path(of number: InodeNumber) -> String? {
        guard let names = try? host.replica.database.path(of: number) else { return nil }
        return ([mountpoint] + names).joined(separator: "/")
    }

    private func root() throws -> InodeRecord {
        guard let root = try host.replica.database.inode(.root) else {
            throw ControlError(.failed, "the replica has no root", path: mountpoint)
        }
        return root
    }

    private func child(_ name: String, of directory: InodeRecord, _ path: String) async throws -> InodeRecord {
        guard directory.kind == .directory else {
            throw Self.notDirectory(on: path)
        }
        var answer = try host.replica.database.lookup(name, in: directory.number)
        // What was made here is known without a listing.
        if lists, answer.inode == nil || answer.directory == .materialized {
            try await host.engine.list(directory.number, request: FileProviderRequest(reason: .lookup))
            answer = try host.replica.database.lookup(name, in: directory.number)
        }
        guard let inode = answer.inode else {
            guard answer.directory == .materialized else {
                let obstacle = host.engine.connection.failure.map { ", and cannot be now: \($0.message)" }
                throw ControlError(
                    .failed,
                    "not known yet: the directory that would hold it has not been listed"
                        + (obstacle ?? "; 'ls' it first"), path: path)
            }
            throw Self.noSuchItem(at: path)
        }
        return inode
    }

    private static func notDirectory(on path: String) -> ControlError {
        ControlError(.failed, "something on the way is not a directory", path: path)
    }

    static func noSuchItem(at path: String) -> ControlError {
        ControlError(
            .failed, "no such file or directory", path: path, itemCode: FileProviderError.Code.noSuchItem.rawValue)
    }

    /// The path of an item in the mount; nil for a hidden one.
    func path(of item: ItemRecord) -> String? {
        guard let parent = item.parent, !item.isHidden, let directory = path(of: parent) else {
            return path(of: item.inode.number)
        }
        return directory + "/" + item.name
    }

    private static func names(of path: String, below mountpoint: String) throws -> [String] {
        guard Mountpoint.contains(mountpoint, path) else {
            throw ControlError(.failed, "not in the mount", path: path)
        }
        return components(Substring(path.utf8.dropFirst(mountpoint.utf8.count)))
    }

    private static func components(_ path: Substring) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
            .filter { !$0.utf8.elementsEqual(".".utf8) }
    }
}
