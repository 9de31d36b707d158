import Control
import FileProvider
import Foundation
import Replica
import SystemPackage

/// The domains that this machine knows: a folder each in the state directory.
struct DomainStore: Sendable {
    /// A known domain.
    struct Known: Sendable {
        var name: String
        var source: String
        var mountpoint: String?
        var options: DomainOptions
        /// What is wrong with its database; nil when it can be read.
        var damage: String?
    }

    private let folder: FilePath

    /// - Parameter stateDirectory: made, with its parents, when it is missing.
    init(in stateDirectory: FilePath) throws {
        folder = stateDirectory.appending("domains")
        try FileManager.default.createDirectory(
            atPath: folder.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// Where a domain's replica is, or would be.
    func directory(of name: String) -> FilePath { folder.appending(name) }

    /// All known domains by name; a replica that cannot be read is left out and said in `unreadable`.
    func all() -> (known: [Known], unreadable: [String]) {
        var known: [Known] = []
        var unreadable: [String] = []
        for name in ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []).sorted() {
            do {
                if let domain = try domain(named: name) { known.append(domain) }
            } catch {
                unreadable.append("the replica in '\(directory(of: name))' cannot be read: \(error)")
            }
        }
        return (known, unreadable)
    }

    /// A known domain; nil when there is none of this name. Of one whose database is damaged it is known what lies beside
    /// that.
    ///
    /// - Throws: what the database says.
    func domain(named name: String) throws -> Known? {
        guard FileProviderDomain.isValid(identifier: name) else { return nil }
        let directory = directory(of: name)
        do {
            guard let record = try DomainRecord(ofReplicaIn: directory) else { return nil }
            return Known(
                name: name, source: record.source, mountpoint: record.mountpoint,
                options: DomainOptions(json: record.options))
        } catch let damage as ReplicaDamage {
            guard let record = DomainSidecar(in: directory) else { throw damage }
            return Known(
                name: name, source: record.source, mountpoint: record.mountpoint,
                options: DomainOptions(json: record.options), damage: damage.description)
        }
    }
}
