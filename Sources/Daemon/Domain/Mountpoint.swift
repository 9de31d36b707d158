import Control
import FUSE
import Foundation
import Syscalls
import SystemPackage

/// The directory that a domain is to be mounted on.
struct Mountpoint: Sendable {
    let path: FilePath
    /// Whether it was not there before.
    private var wasMade = false

    /// Makes sure that a domain can be mounted on a directory: makes it where it is missing, and takes away a mount of
    /// ours that nobody serves any more.
    ///
    /// - Parameters:
    ///   - directory: an absolute path.
    ///   - source: the domain's, which must not contain the directory or lie in it.
    /// - Throws: `ControlError` that says what is in the way.
    init(_ directory: String, source: String) throws(ControlError) {
        path = FilePath(directory)
        // The command has followed all links but the last one.
        for place in Self.linksFollowed(from: path) {
            if source.hasPrefix("/") {
                guard !Self.contains(source, place.string) else {
                    throw ControlError(
                        .failed, "it lies in the source '\(source)', which would contain itself", path: directory)
                }
                guard !Self.contains(place.string, source) else {
                    throw ControlError(
                        .failed, "the source '\(source)' lies in it and would be hidden", path: directory)
                }
            }
            try checkSurroundings(of: place)
        }
        try removeDeadMount()
        let isEmpty: Bool
        do {
            wasMade = try Self.make(path)
            let opened = try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
            defer { try? opened.close() }
            isEmpty = try opened.names().isEmpty
        } catch {
            throw ControlError(.failed, "cannot mount there: \(error)", path: directory)
        }
        guard isEmpty else {
            throw ControlError(
                .failed, "it is not empty; mount on an empty directory, or one that is not there yet", path: directory)
        }
    }

    /// Nothing is mounted there after all: a directory that was made for it goes.
    func giveUp() {
        if wasMade { try? path.removeDirectory() }
    }

    /// Makes a directory, with those above it; one that is there already is fine.
    ///
    /// - Returns: false for one that was there.
    @discardableResult
    private static func make(_ path: FilePath) throws -> Bool {
        if (try? FileStatus(at: path)) != nil { return false }
        let permissions = FilePermissions(rawValue: 0o777)
        do {
            try path.makeDirectory(permissions: permissions)
        } catch Errno.noSuchFileOrDirectory {
            let parent = path.removingLastComponent()
            guard parent != path else { throw Errno.noSuchFileOrDirectory }
            try make(parent)
            try path.makeDirectory(permissions: permissions)
        }
        return true
    }

    /// A path, and where it leads to when it is a symbolic link, and so on. What lies in a mount of ours is not touched: the
    /// mount may be dead.
    private static func linksFollowed(from path: FilePath) -> [FilePath] {
        var places = [path]
        while places.count <= 40, let current = places.last, outerMount(of: current) == nil,
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: current.string)
        {
            places.append(current.removingLastComponent().pushing(FilePath(target)).lexicallyNormalized())
        }
        return places
    }

    /// The mount of ours in which a path lies; not the one that is mounted on it.
    private static func outerMount(of path: FilePath) -> MountTable.Mount? {
        (try? MountTable())?.mounts.last { mount in
            let folder = String(decoding: mount.path, as: UTF8.self)
            return mount.type == "fuse.yonder" && contains(folder, path.string) && folder != path.string
        }
    }

    /// A directory that is made in a mount of ours would go to that one's remote, and keep it from being unmounted.
    private func checkSurroundings(of place: FilePath) throws(ControlError) {
        guard let outer = Self.outerMount(of: place) else { return }
        throw ControlError(
            .failed, "it lies in a mount of ours, '\(outer.source)'; mount on a directory outside of that",
            path: path.string)
    }

    /// A daemon that was killed leaves its mounts behind: whoever touches one gets ENOTCONN.
    private func removeDeadMount() throws(ControlError) {
        _ = try Self.removeDeadMounts(on: path) { $0.type == "fuse.yonder" }
        guard let mount = (try? MountTable())?.mount(at: path) else { return }
        guard mount.type == "fuse.yonder" else {
            throw ControlError(.failed, "something else is mounted there: '\(mount.source)'", path: path.string)
        }
        throw ControlError(
            .failed, "another daemon has mounted '\(mount.source)' there; 'fusermount3 -u' takes that mount away",
            path: path.string)
    }

    /// What /proc/mounts calls the mount of a domain.
    static func source(of domain: String) -> String { "//yonder/\(domain)" }

    /// Detaches what a daemon that was killed has left of a domain's mount. A mount that a daemon serves stays. Blocks for
    /// moments.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `failed` for one that cannot be detached.
    static func removeDeadMounts(of domain: String, on directory: String) throws(ControlError) -> Bool {
        try removeDeadMounts(on: FilePath(directory)) { mount in
            mount.type == "fuse.yonder" && mount.source.utf8.elementsEqual(source(of: domain).utf8)
        }
    }

    /// A daemon may have been killed more than once: dead mounts can lie on each other.
    private static func removeDeadMounts(
        on path: FilePath, where isOurs: (MountTable.Mount) -> Bool
    ) throws(ControlError) -> Bool {
        var count = 0
        while let mount = (try? MountTable())?.mount(at: path), isOurs(mount), isDead(path) {
            do throws(Errno) {
                // Should the kernel go on to show it, trying for ever would not help.
                guard count < 64 else { throw .resourceBusy }
                try MountTable.detach(path)
            } catch {
                throw ControlError(
                    .failed, "a dead mount is there and cannot be taken away: \(error)", path: path.string)
            }
            count += 1
        }
        return count > 0
    }

    /// Whether nobody serves the mount on a directory. Opening asks the daemon; without one the kernel answers ENOTCONN.
    private static func isDead(_ path: FilePath) -> Bool {
        do {
            try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec]).close()
            return false
        } catch {
            return error as? Errno == .socketNotConnected
        }
    }

    /// Whether a path is, or lies in, a folder. By bytes.
    static func contains(_ folder: String, _ path: String) -> Bool {
        let folder = folder == "/" ? "" : folder
        return path.utf8.elementsEqual(folder.utf8) || path.utf8.starts(with: (folder + "/").utf8)
    }
}
