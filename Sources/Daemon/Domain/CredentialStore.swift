import Control
import Foundation
import SystemPackage

/// Passwords that had to be kept: a file for each domain, which only its owner can read.
struct CredentialStore: Sendable {
    private let folder: FilePath

    /// - Parameter configuration: the configuration file, beside which they lie.
    init(besides configuration: FilePath) {
        folder = configuration.removingLastComponent().appending("credentials")
    }

    /// What was kept for a domain; nil when there is nothing, or nothing that can be read.
    func credentials(of domain: String) -> GivenCredentials? {
        guard let data = FileManager.default.contents(atPath: file(of: domain).string) else { return nil }
        return try? JSONDecoder().decode(GivenCredentials.self, from: data)
    }

    /// Keeps credentials; they are on the disk when this returns, and never readable by others.
    ///
    /// - Throws: what the file system says.
    func keep(_ credentials: GivenCredentials, of domain: String) throws {
        try FileManager.default.createDirectory(
            atPath: folder.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let data = try JSONEncoder().encode(credentials)
        let new = folder.appending(".\(domain).new")
        // A file of an earlier attempt may have other permissions.
        try? FileManager.default.removeItem(atPath: new.string)
        let descriptor = try FileDescriptor.open(
            new, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: [.ownerReadWrite])
        try descriptor.closeAfter { _ = try descriptor.writeAll(Array(data)) }
        guard rename(new.string, file(of: domain).string) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    /// Deletes what was kept for a domain.
    func forget(_ domain: String) {
        try? FileManager.default.removeItem(atPath: file(of: domain).string)
    }

    private func file(of domain: String) -> FilePath { folder.appending(domain) }
}
