import FileProvider
import Syscalls
import SystemPackage

/// Verifies a program that was found by its name: another user could have put it there.
enum TrustedProgram {
    /// - Throws: `providerNotFound`, with what to do, when the program or its directory, behind symbolic links, belongs to another user, or
    ///   is writable for all users. In a directory with the sticky bit others cannot replace it.
    static func check(_ path: String) throws(FileProviderError) {
        let file = (try? FilePath(path).resolvingLinks()) ?? FilePath(path)
        try check(file, isDirectory: false)
        try check(file.removingLastComponent(), isDirectory: true)
    }

    private static func check(_ path: FilePath, isDirectory: Bool) throws(FileProviderError) {
        let status: FileStatus
        do throws(Errno) {
            status = try FileStatus(following: path)
        } catch {
            throw FileProviderError(.providerNotFound, "'\(path)' cannot be examined: \(error)")
        }
        guard [0, Machine.userIdentifier].contains(status.owner) else {
            throw FileProviderError(
                .providerNotFound,
                "'\(path)' belongs to user \(status.owner): Yonder runs programs of root and of user \(Machine.userIdentifier) "
                    + "only")
        }
        let isSticky = isDirectory && status.permissions & 0o1000 != 0
        guard status.permissions & 0o002 == 0 || isSticky else {
            throw FileProviderError(
                .providerNotFound,
                "all users can write '\(path)', so the program may be another user's; look at it, then 'chmod o-w \(path)'"
            )
        }
    }
}
