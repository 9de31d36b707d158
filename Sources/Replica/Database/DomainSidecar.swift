import Foundation
import Syscalls
import SystemPackage

/// A domain's record beside its database, from which the domain is restored if the database is lost.
package struct DomainSidecar: Codable, Hashable, Sendable {
    /// Where the remote is, as the user named it.
    package var source: String
    /// Where it was mounted last.
    package var mountpoint: String?
    /// How it was mounted, as JSON.
    package var options: String?

    package init(source: String, mountpoint: String?, options: String?) {
        self.source = source
        self.mountpoint = mountpoint
        self.options = options
    }

    /// The one in a domain's folder; nil where there is none that can be read.
    package init?(in directory: FilePath) {
        guard let data = FileManager.default.contents(atPath: Self.path(in: directory).string),
            let sidecar = try? JSONDecoder().decode(DomainSidecar.self, from: data)
        else { return nil }
        self = sidecar
    }

    /// Writes it, whole or not at all.
    package func write(in directory: FilePath) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try Self.path(in: directory).replaceDurably(with: Array(encoder.encode(self)), permissions: .ownerReadWrite)
    }

    static func path(in directory: FilePath) -> FilePath { directory.appending("domain.json") }
}
