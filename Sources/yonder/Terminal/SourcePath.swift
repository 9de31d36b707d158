import ArgumentParser
import Foundation

/// Sources as the daemon takes them.
enum SourcePath {
    /// A path without its symbolic links and surplus slashes: one source has one name. What is no path stays as it is.
    ///
    /// - Throws: `ExitCode` after saying that there is no such folder.
    static func resolving(_ source: String) throws -> String {
        guard !source.contains("://") else { return source }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: source, isDirectory: &isDirectory) else {
            Output.complain("\(source): no such folder")
            throw ExitCode(1)
        }
        guard isDirectory.boolValue else {
            Output.complain("\(source): not a folder")
            throw ExitCode(1)
        }
        return URL(fileURLWithPath: AbsolutePath.resolving(source + "/.")).resolvingSymlinksInPath().path
    }
}
