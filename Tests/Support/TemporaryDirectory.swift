import Foundation
import SystemPackage

/// A new directory for one test. The test removes it, typically with `defer`; what is still mounted in it is
/// never entered.
package struct TemporaryDirectory: Sendable {
    package let path: FilePath

    package init() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-test-\(UUID().uuidString)")
        // Open to all, so that tests of other users' rights can reach into it.
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
        path = FilePath(url.resolvingSymlinksInPath().path)
    }

    /// The user and group that files made by this process belong to.
    package var owner: (user: UInt32, group: UInt32) {
        get throws {
            let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
            let user = attributes[.ownerAccountID] as? NSNumber
            let group = attributes[.groupOwnerAccountID] as? NSNumber
            return (user?.uint32Value ?? 0, group?.uint32Value ?? 0)
        }
    }

    /// A path in it.
    package subscript(_ name: String) -> FilePath { path.appending(name) }

    /// Makes a directory in it.
    package func makeDirectory(_ name: String) throws -> FilePath {
        try FileManager.default.createDirectory(atPath: self[name].string, withIntermediateDirectories: true)
        return self[name]
    }

    /// Makes a file in it.
    package func makeFile(_ name: String, _ bytes: some Sequence<UInt8>) throws -> FilePath {
        try Data(bytes).write(to: URL(fileURLWithPath: self[name].string))
        return self[name]
    }

    /// Opens a file in it for reading and writing, and makes it if it is missing. The caller closes it.
    package func openFile(_ name: String) throws -> FileDescriptor {
        try FileDescriptor.open(
            self[name], .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
    }

    package func remove() {
        try? FileManager.default.removeItem(atPath: path.string)
    }
}
