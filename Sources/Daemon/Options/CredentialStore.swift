import Control
import Foundation
import Syscalls
import SystemPackage

/// Stored passwords and environment variables: one file per domain, readable only by its owner.
struct CredentialStore: Sendable {
    private let folder: FilePath

    /// - Parameter folder: created when credentials are stored.
    init(in folder: FilePath) {
        self.folder = folder
    }

    /// The stored credentials of a domain; nil if there are none or they cannot be read.
    func credentials(of domain: String) -> GivenCredentials? {
        guard let data = FileManager.default.contents(atPath: file(of: domain).string) else { return nil }
        return try? JSONDecoder().decode(GivenCredentials.self, from: data)
    }

    /// Stores credentials durably, replacing earlier ones. They are never readable by other users.
    ///
    /// - Throws: `ControlError` for a folder that others own or can write; file system errors. The earlier
    ///   credentials stay then.
    func keep(_ credentials: GivenCredentials, of domain: String) throws {
        try TrustedDirectory.check(folder.string, for: .secrets)
        try folder.makeDirectories()
        // The folder may be new, too.
        try folder.removingLastComponent().synchronizeDirectory()
        let data = try JSONEncoder().encode(credentials)
        try file(of: domain).replaceDurably(with: Array(data), permissions: .ownerReadWrite)
    }

    func forget(_ domain: String) {
        try? file(of: domain).unlinkIfPresent()
    }

    private func file(of domain: String) -> FilePath { folder.appending(domain) }
}
