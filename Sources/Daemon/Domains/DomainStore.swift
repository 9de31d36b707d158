import Control
import FileProvider
import Foundation
import Logging
import Replica
import Syscalls
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
    private let stateDirectory: FilePath

    /// - Parameter stateDirectory: made, with its parents, when it is missing.
    init(in stateDirectory: FilePath) throws {
        self.stateDirectory = stateDirectory
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
            guard let record = try DomainRecord(ofReplicaIn: directory) else {
                // The row that says where the remote is may be all that is damaged.
                return DomainSidecar(in: directory).map { known(name, by: $0, damage: nil) }
            }
            return Known(
                name: name, source: record.source, mountpoint: record.mountpoint,
                options: DomainOptions(json: record.options))
        } catch let damage as ReplicaDamage {
            guard let record = DomainSidecar(in: directory) else { throw damage }
            return known(name, by: record, damage: damage.description)
        }
    }

    private func known(_ name: String, by record: DomainSidecar, damage: String?) -> Known {
        Known(
            name: name, source: record.source, mountpoint: record.mountpoint,
            options: DomainOptions(json: record.options), damage: damage)
    }

    /// As ``domain(named:)``. Of a domain whose database and `domain.json` are both damaged only the name is known, and that
    /// it is one.
    func domainOrItsRemains(named name: String) throws -> Known? {
        do {
            return try domain(named: name)
        } catch let damage as ReplicaDamage {
            return Known(
                name: name, source: "", mountpoint: nil, options: DomainOptions(), damage: damage.description)
        }
    }

    /// What can be done about a domain of which it is not known any more where its remote is.
    static func wayOut(of name: String) -> String {
        "where its remote is is not known any more: 'yonder mount SOURCE DIR --name \(name)' says it again, then "
            + "'yonder check \(name) --repair' makes a new database; 'yonder remove \(name)' forgets the domain and keeps "
            + "what is on this machine alone"
    }

    /// Writes anew where a domain's remote is, for one of which that is not known any more.
    func restoreRecord(of name: String, _ sidecar: DomainSidecar) throws {
        try sidecar.write(in: directory(of: name))
    }

    /// The names of all domains, also of those that cannot be read.
    func names() -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []).sorted().filter { name in
            do {
                return try domain(named: name) != nil
            } catch {
                return true
            }
        }
    }

    /// Keeps the options of a domain that is not mounted. Blocks.
    func keepOptions(of known: Known, logger: Logger) throws {
        let directory = directory(of: known.name)
        let replica = try Replica(at: directory, readers: 2, logger: logger)
        defer { try? replica.close() }
        try known.options.keep(in: replica, of: known.source, on: known.mountpoint, directory)
    }

    // MARK: - Coming and going

    /// Where the data of removed domains goes when nobody says where.
    var kept: FilePath { stateDirectory.appending("kept") }

    /// A new place for a replica that is no domain yet. What lies there after a crash is nobody's.
    func newStaging(for name: String) throws -> FilePath {
        let place = staging.appending("\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            atPath: place.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return place
    }

    /// Makes a replica a domain, in one step.
    func adopt(_ place: FilePath, as name: String) throws {
        try place.move(to: directory(of: name))
        try synchronize()
    }

    /// Forgets a domain, in one step. What is left to do for it is done by ``finishRemoval(of:)``, now or at the next
    /// start.
    ///
    /// - Parameter kept: where its data was put, or nil.
    /// - Returns: where the replica lies now.
    func forget(_ name: String, keptIn kept: FilePath?) throws -> FilePath {
        let marker = directory(of: name).appending(Self.marker)
        try marker.unlinkIfPresent()
        if let kept { try Data(kept.string.utf8).write(to: URL(fileURLWithPath: marker.string)) }
        try FileManager.default.createDirectory(
            atPath: removed.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let place = removed.appending("\(name)-\(UUID().uuidString)")
        try directory(of: name).move(to: place)
        try synchronize()
        return place
    }

    /// Gives what was kept its attributes and deletes the replica.
    func finishRemoval(of place: FilePath) throws {
        let marker = FileManager.default.contents(atPath: place.appending(Self.marker).string)
        if let marker { try? Keeping.dress(FilePath(String(decoding: marker, as: UTF8.self))) }
        try FileManager.default.removeItem(atPath: place.string)
    }

    /// Does away with what a crash left in the middle of a removal or an import.
    func cleanUp(_ report: (String) -> Void) {
        for (folder, finish) in [
            (removed, finishRemoval), (staging, { try FileManager.default.removeItem(atPath: $0.string) }),
        ] {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? [] {
                guard let component = FilePath.Component(name) else { continue }
                do {
                    try finish(folder.appending(component))
                } catch {
                    report("'\(folder.appending(component))' cannot be removed: \(error)")
                }
            }
        }
    }

    private static let marker = "kept"
    private var removed: FilePath { stateDirectory.appending("removed") }
    private var staging: FilePath { stateDirectory.appending("staging") }

    private func synchronize() throws {
        let root = try FileDescriptor.open(stateDirectory, .readOnly, options: [.directory, .closeOnExec])
        defer { try? root.close() }
        try root.syncFileSystem()
    }
}
