import ArgumentParser
import Foundation

/// Normalizes sources for the daemon.
enum SourcePath {
    /// Resolves the symbolic links and duplicate slashes of a path, so that a source has one name. A URL is
    /// unchanged.
    ///
    /// - Throws: `ExitCode` after printing that the folder does not exist.
    static func resolving(_ source: String) throws -> String {
        guard !source.contains("://") else { return source }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: source, isDirectory: &isDirectory) else {
            let hint = source.contains(":") ? "; a URL has '://', for example webdavs://HOST/PATH" : ""
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
