import Syscalls
import SystemPackage

/// Verifies the directories that the daemon trusts. A user who can write one of them could replace the database, the
/// credentials or the socket, so the daemon refuses directories that another user owns or can write.
package enum TrustedDirectory {
    package enum Content: Sendable {
        /// Private files: the state, the credentials. Other users must not have access.
        case secrets
        /// A file that other users may see: the configuration, the socket. The directory may belong to root, and may
        /// have the sticky bit, as `/tmp` does.
        case file
    }

    /// Verifies a directory. A missing directory is valid. A directory of secrets that other users can only read gets
    /// mode 0700.
    ///
    /// - Throws: ``ControlError``: `notPermitted` for a directory that another user owns or can write, with
    ///   instructions, for one that this user cannot reach, and for another kind of file.
    package static func check(_ path: String, for content: Content) throws(ControlError) {
        guard let status = try status(of: path) else { return }
        guard status.kind == .directory else { throw ControlError(.notPermitted, "it is not a directory", path: path) }
        try checkOwner(status, path, allowsRoot: content == .file)
        let isSticky = status.permissions & 0o1000 != 0
        if status.permissions & 0o022 != 0, content == .secrets || !isSticky {
            let mode = String(status.permissions & 0o7777, radix: 8)
            let remedy = content == .secrets ? "chmod 700" : "chmod go-w"
            throw ControlError(
                .notPermitted,
                "other users can write this directory (mode \(mode)), so what it holds may be theirs; look at what it "
                    + "holds, then '\(remedy) \(path)'", path: path)
        }
        guard content == .secrets, status.permissions & 0o077 != 0 else { return }
        do {
            try FilePath(path).setPermissions(0o700)
        } catch {
            throw ControlError(ControlError.Code(of: error), "its mode cannot be set to 700: \(error)", path: path)
        }
    }

    /// Verifies a file that other users may read but not write. A missing file is valid.
    ///
    /// - Throws: as ``check(_:for:)``.
    package static func checkFile(_ path: String) throws(ControlError) {
        guard let status = try status(of: path) else { return }
        try checkOwner(status, path, allowsRoot: true)
        guard status.kind == .regular, status.permissions & 0o022 != 0 else { return }
        throw ControlError(
            .notPermitted,
            "other users can write this file (mode \(String(status.permissions, radix: 8))); look at what it says, then "
                + "'chmod go-w \(path)'", path: path)
    }

    private static func checkOwner(
        _ status: FileStatus, _ path: String, allowsRoot: Bool
    ) throws(ControlError) {
        guard status.owner != Machine.userIdentifier, !(allowsRoot && status.owner == 0) else { return }
        throw ControlError(
            .notPermitted,
            "it belongs to user \(status.owner), and Yonder runs as user \(Machine.userIdentifier): run it as its owner, or "
                + "name another place with YONDER_STATE_DIR, YONDER_CONFIG or YONDER_SOCKET", path: path)
    }

    /// The status of the file at a path; nil if there is none.
    static func status(of path: String, followsLink: Bool = true) throws(ControlError) -> FileStatus? {
        do throws(Errno) {
            return try followsLink ? FileStatus(following: FilePath(path)) : FileStatus(at: FilePath(path))
        } catch {
            guard error != .noSuchFileOrDirectory else { return nil }
            throw ControlError(ControlError.Code(of: error), "cannot be examined: \(error)", path: path)
        }
    }
}

extension Places {
    /// Verifies all directories that the daemon uses, before it reads or creates anything in them.
    ///
    /// - Throws: as ``TrustedDirectory/check(_:for:)``.
    package func check() throws(ControlError) {
        try TrustedDirectory.check(stateDirectory, for: .secrets)
        try TrustedDirectory.check(Self.directory(of: configuration), for: .file)
        try TrustedDirectory.checkFile(configuration)
        try TrustedDirectory.check(credentials, for: .secrets)
        try TrustedDirectory.check(Self.directory(of: socket), for: .file)
    }
}
