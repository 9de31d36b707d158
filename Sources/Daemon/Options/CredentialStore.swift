import Control
import Foundation
import Syscalls
import SystemPackage

/// Passwords and variables that had to be kept: a file for each domain, which only its owner can read.
struct CredentialStore: Sendable {
    private let folder: FilePath

    /// - Parameter folder: where they lie; made when something is kept.
    init(in folder: FilePath) {
        self.folder = folder
    }

    /// What was kept for a domain; nil when there is nothing, or nothing that can be read.
    func credentials(of domain: String) -> GivenCredentials? {
        guard let data = FileManager.default.contents(atPath: file(of: domain).string) else { return nil }
        return try? JSONDecoder().decode(GivenCredentials.self, from: data)
    }

    /// Keeps credentials in place of those of before; they are on the disk when this returns, and never readable by
    /// others.
    ///
    /// - Throws: `ControlError` for a folder that others own or can write; what the file system says. Those of before
    ///   stay then.
    func keep(_ credentials: GivenCredentials, of domain: String) throws {
        try TrustedDirectory.check(folder.string, for: .secrets)
        try folder.makeDirectories()
        // The name of the folder itself may be as new.
        try folder.removingLastComponent().synchronizeDirectory()
        let data = try JSONEncoder().encode(credentials)
        try file(of: domain).replaceDurably(with: Array(data), permissions: .ownerReadWrite)
    }

    /// Deletes what was kept for a domain.
    func forget(_ domain: String) {
        try? file(of: domain).unlinkIfPresent()
    }

    private func file(of domain: String) -> FilePath { folder.appending(domain) }
}
