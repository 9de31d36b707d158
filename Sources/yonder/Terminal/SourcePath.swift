import ArgumentParser
import Foundation
import ProviderDescriptors

/// Normalizes sources for the daemon.
enum SourcePath {
    /// The kind of a source as the user wrote it; nil if no kind serves it.
    static func descriptor(of source: String) -> ProviderDescriptor? {
        if source.contains("://") || program(of: source) != nil { return ProviderDescriptor.serving(source) }
        return ProviderDescriptor.serving(AbsolutePath.resolving(source))
    }

    /// The program that serves a source; nil if there is none, or a file has the name.
    private static func program(of source: String) -> String? {
        guard !FileManager.default.fileExists(atPath: source) else { return nil }
        return ProgramSource(source)?.program(in: ProcessInfo.processInfo.environment)
    }

    /// Resolves the symbolic links and duplicate slashes of a path, so that a source has one name. A URL and the
    /// source of a program are unchanged.
    ///
    /// - Throws: `ExitCode` after printing that the folder does not exist.
    static func resolving(_ source: String) throws -> String {
        guard !source.contains("://"), program(of: source) == nil else { return source }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: source, isDirectory: &isDirectory) else {
            let program = ProgramSource(source).map { ", and there is no program '\($0.programName)' either" } ?? ""
            let hint = source.contains(":") ? "; a URL has '://', for example webdavs://HOST/PATH\(program)" : ""
            Output.complain("\(source): no such folder\(hint)")
            throw ExitCode(1)
        }
        guard isDirectory.boolValue else {
            Output.complain("\(source): not a folder")
            throw ExitCode(1)
        }
        return URL(fileURLWithPath: AbsolutePath.resolving(source + "/.")).resolvingSymlinksInPath().path
    }
}
