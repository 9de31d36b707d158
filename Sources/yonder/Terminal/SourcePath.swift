import ArgumentParser
import Foundation
import ProviderDescriptors
import Syscalls
import SystemPackage

/// Normalizes sources for the daemon.
enum SourcePath {
    /// The kind of a source as the user wrote it; nil if no kind serves it.
    static func descriptor(of source: String) -> ProviderDescriptor? {
        if isAddress(source) { return ProviderDescriptor.serving(source) }
        return ProviderDescriptor.serving(AbsolutePath.resolving(source))
    }

    /// - Throws: `ValidationError`, without the source, for one with a password.
    static func refusePassword(in source: String) throws {
        guard source.contains("://"), AddressPassword.isIn(source) else { return }
        throw ValidationError(
            "a password has no place in a source, which is stored and shown: "
                + "WebDAV takes --password-stdin and ~/.netrc, SFTP a key"
        )
    }

    /// Whether a source is no path: a URL, or one of a kind or a program where no file has the name.
    private static func isAddress(_ source: String) -> Bool {
        if source.contains("://") { return true }
        guard (try? FileStatus(following: FilePath(fileNamed: source))) == nil else { return false }
        return ProviderDescriptor.all.contains { $0 != .folder && $0.serves(source) }
            || ProgramSource(source)?.file(in: ProcessInfo.processInfo.environment) != nil
    }

    /// Resolves the symbolic links and duplicate slashes of a path, so that a source has one name. A source that
    /// is no path is unchanged.
    ///
    /// - Throws: `ExitCode` after printing that the folder does not exist.
    static func resolving(_ source: String) throws -> String {
        guard !isAddress(source) else { return source }
        let path = FilePath(fileNamed: source)
        guard let status = try? FileStatus(following: path) else {
            let program = ProgramSource(source).map { ", and there is no program '\($0.programName)' either" } ?? ""
            let hint = source.contains(":") ? "; a URL has '://', for example webdavs://HOST/PATH\(program)" : ""
            throw Output.failure("\(source): no such folder\(hint)")
        }
        guard status.kind == .directory else { throw Output.failure("\(source): not a folder") }
        return (try? path.resolvingLinks())?.fileNameText ?? AbsolutePath.resolving(source + "/.")
    }
}
