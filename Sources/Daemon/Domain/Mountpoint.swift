import Control
import FUSE
import FileNames
import ProviderDescriptors
import Syscalls
import SystemPackage

/// The directory on which a domain is mounted.
struct Mountpoint: Sendable {
    let path: FilePath
    /// Whether this instance has created the directory.
    private var wasMade = false
    /// Whether the directory was protected before (``protect()``).
    private var wasProtected = false
    /// The directory itself, which is still reached by this when a mount hides it.
    private var directory: FileDescriptor?

    /// Prepares a directory for a mount: creates it if it is missing, and detaches a dead mount of Yonder.
    ///
    /// - Parameters:
    ///   - directory: an absolute path.
    ///   - source: the domain's source, which must neither contain the directory nor lie in it.
    ///   - isKnown: whether the domain was mounted before.
    ///   - mayHaveFiles: whether the directory may have files, which the mount hides.
    /// - Throws: `ControlError` with the reason.
    init(
        _ directory: String, source: String, isKnown: Bool = false, mayHaveFiles: Bool = false
    ) throws(ControlError) {
        path = FilePath(fileNamed: directory)
        // The command line has followed all links but the last one.
        for place in Self.linksFollowed(from: path) {
            if let source = ProviderDescriptor.folder(of: source) {
                guard !Self.contains(source, place.fileNameText) else {
                    throw ControlError(
                        .failed, "it lies in the source '\(source)', which would contain itself", path: directory)
                }
                guard !Self.contains(place.fileNameText, source) else {
                    throw ControlError(
                        .failed, "the source '\(source)' lies in it and would be hidden", path: directory)
                }
            }
            try checkSurroundings(of: place)
        }
        try removeDeadMount()
        let opened: FileDescriptor
        do {
            wasMade = try Self.make(path)
            opened = try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
            self.directory = opened
        } catch {
            throw ControlError(.failed, "cannot mount there: \(error)", path: directory)
        }
        do {
            let names = try opened.names()
            guard names.isEmpty || mayHaveFiles else {
                throw ControlError(
                    .failed,
                    "it is not empty: it has \(Self.listed(names)); "
                        + (isKnown ? "'--move-found' moves what is there into the mount; or " : "")
                        + "mount on an empty directory, or one that is not there yet", path: directory)
            }
            // fusermount3 mounts only where the user may write.
            wasProtected = try Self.setWritable(true, opened)
        } catch {
            try? opened.close()
            throw error as? ControlError ?? ControlError(.failed, "cannot mount there: \(error)", path: directory)
        }
    }

    /// Some names, and how many more there are.
    private static func listed(_ names: [[UInt8]]) -> String {
        let shown = names.map { FileNameText.text(of: $0) }.sorted().prefix(3).map { "'\($0)'" }
        let rest = names.count - shown.count
        return shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    /// The mount has failed: removes the directory if it was created here, else it is as it was.
    func giveUp() {
        if wasMade { try? path.removeDirectory() }
        if wasProtected { protect() } else { try? directory?.close() }
    }

    /// The mount is made. Whenever it is not there, its user cannot write to the directory by mistake: what is written there
    /// is not uploaded, and hidden by the next mount.
    func protect() {
        guard let directory else { return }
        _ = try? Self.setWritable(false, directory)
        try? directory.close()
    }

    /// No domain is mounted on a directory any more: takes back what ``protect()`` has done.
    ///
    /// - Returns: whether the directory was protected.
    @discardableResult
    static func release(_ directory: String) -> Bool { setWritable(true, at: directory) }

    /// Takes back what ``release(_:)`` has done.
    static func protect(_ directory: String) { _ = setWritable(false, at: directory) }

    private static func setWritable(_ isWritable: Bool, at directory: String) -> Bool {
        guard
            let opened = try? FileDescriptor.open(
                FilePath(fileNamed: directory), .readOnly, options: [.directory, .closeOnExec, .noFollow])
        else { return false }
        defer { try? opened.close() }
        return (try? setWritable(isWritable, opened)) ?? false
    }

    /// Gives the owner the right to write, or takes it from all users, if the owner is this user. Root always may.
    ///
    /// - Returns: whether it was otherwise.
    private static func setWritable(_ isWritable: Bool, _ directory: FileDescriptor) throws(Errno) -> Bool {
        let status = try FileStatus(of: directory)
        let (ownersWriting, writing): (UInt16, UInt16) = (0o200, 0o222)
        let permissions = isWritable ? status.permissions | ownersWriting : status.permissions & ~writing
        guard Machine.userIdentifier != 0, status.owner == Machine.userIdentifier, permissions != status.permissions
        else {
            return false
        }
        try directory.setPermissions(permissions)
        return true
    }

    /// Creates a directory and its missing ancestors.
    ///
    /// - Returns: false if it existed.
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

    /// A path, and the targets if it is a chain of symbolic links. Paths in a mount of Yonder are not accessed,
    /// because the mount may be dead.
    private static func linksFollowed(from path: FilePath) -> [FilePath] {
        var places = [path]
        while places.count <= 40, let current = places.last, outerMount(of: current) == nil,
            let target = try? current.linkTarget()
        {
            places.append(current.removingLastComponent().pushing(FilePath(fileNamed: target)).lexicallyNormalized())
        }
        return places
    }

    /// Where a path leads if it is a chain of symbolic links; else the path.
    static func target(of path: String) -> String {
        let path = FilePath(fileNamed: path)
        return (linksFollowed(from: path).last ?? path).fileNameText
    }

    /// Whether a path, or what it links to, equals a folder or lies in it.
    static func leads(_ path: String, into folder: String) -> Bool {
        linksFollowed(from: FilePath(fileNamed: path)).contains { contains(folder, $0.fileNameText) }
    }

    /// The mount of Yonder that contains a path, without one on the path itself.
    private static func outerMount(of path: FilePath) -> MountTable.Mount? {
        let text = path.fileNameText
        return (try? MountTable())?.mounts.last { mount in
            mount.type == "fuse.yonder" && mount.filePath != path && contains(mount.filePath.fileNameText, text)
        }
    }

    /// A directory that is created in a mount of Yonder would be uploaded, and keep the mount busy.
    private func checkSurroundings(of place: FilePath) throws(ControlError) {
        guard let outer = Self.outerMount(of: place) else { return }
        throw ControlError(
            .failed,
            "it lies in the mount of another domain, '\(outer.filePath.fileNameText)'; mount on a directory "
                + "outside of that",
            path: path.fileNameText)
    }

    /// A killed daemon leaves its mounts behind; accesses fail with ENOTCONN.
    private func removeDeadMount() throws(ControlError) {
        _ = try Self.removeDeadMounts(on: path) { $0.type == "fuse.yonder" }
        let place = FilePath(fileNamed: Self.target(of: path.fileNameText))
        guard let mount = (try? MountTable())?.mount(at: place) else { return }
        guard mount.type == "fuse.yonder" else {
            throw ControlError(.failed, "something else is mounted there: '\(mount.source)'", path: path.fileNameText)
        }
        throw ControlError(
            .failed, "another daemon has mounted '\(mount.source)' there; 'fusermount3 -u' takes that mount away",
            path: path.fileNameText)
    }

    /// The source of a domain's mount in /proc/mounts.
    static func source(of domain: String) -> String { "//yonder/\(domain)" }

    /// Detaches the mounts that a killed daemon has left for a domain. A served mount stays. Blocks briefly.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `failed` if a mount cannot be detached.
    static func removeDeadMounts(of domain: String, on directory: String) throws(ControlError) -> Bool {
        try removeDeadMounts(on: FilePath(fileNamed: directory)) { mount in
            mount.type == "fuse.yonder" && mount.source.utf8.elementsEqual(source(of: domain).utf8)
        }
    }

    /// A daemon may have been killed repeatedly, so dead mounts can be stacked. The mount table has the directory behind a link.
    private static func removeDeadMounts(
        on directory: FilePath, where isOurs: (MountTable.Mount) -> Bool
    ) throws(ControlError) -> Bool {
        let path = FilePath(fileNamed: target(of: directory.fileNameText))
        var count = 0
        while let mount = (try? MountTable())?.mount(at: path), isOurs(mount), MountTable.isDead(path) {
            do throws(Errno) {
                // Guards against an endless loop if the mount table does not change.
                guard count < 64 else { throw .resourceBusy }
                try Session.detachMount(at: path)
            } catch {
                throw ControlError(
                    .failed, "a dead mount is there and cannot be taken away: \(error)", path: path.fileNameText)
            }
            count += 1
        }
        return count > 0
    }

    /// Whether a path equals a folder or lies in it. Compares bytes.
    static func contains(_ folder: String, _ path: String) -> Bool {
        let folder = folder == "/" ? "" : folder
        return path.utf8.elementsEqual(folder.utf8) || path.utf8.starts(with: (folder + "/").utf8)
    }
}
