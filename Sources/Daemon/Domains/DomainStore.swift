import Control
import FileNames
import FileProvider
import Foundation
import Logging
import ProviderDescriptors
import Replica
import Syscalls
import SystemPackage

/// The known domains: one folder each in the state directory.
struct DomainStore: Sendable {
    struct Known: Sendable {
        var name: String
        var source: String
        var mountpoint: String?
        var options: DomainOptions
        /// The damage of its database; nil if it can be read.
        var damage: String?
        /// Whether the next daemon mounts it.
        var isToBeMounted = false
        /// The number of changes that the remote does not have, as far as is known.
        var pending = 0
    }

    private let folder: FilePath
    let stateDirectory: FilePath

    /// - Parameter stateDirectory: created, with its ancestors, if it is missing.
    init(in stateDirectory: FilePath) throws {
        self.stateDirectory = stateDirectory
        folder = stateDirectory.appending("domains")
        try FileManager.default.createDirectory(
            atPath: folder.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// The directory of a domain's replica, which need not exist.
    func directory(of name: String) -> FilePath { folder.appending(name) }

    /// All known domains, sorted by name. Replicas that cannot be read are reported in `unreadable`.
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

    /// Verifies that this program can open the domains. A damaged database is no reason to refuse: every version treats it alike.
    ///
    /// - Throws: `FileProviderError` for a domain that a newer Yonder has written.
    func refuseNewerDomains() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.string) {
            do {
                try DomainRecord.refuseNewerReplica(in: directory(of: name))
            } catch let error as FileProviderError where error.code == .newerExtensionVersionFound {
                throw error
            } catch {
                continue
            }
        }
    }

    /// A known domain; nil if there is none with this name. If its database is damaged, the sidecar file beside it is
    /// used.
    ///
    /// - Throws: database errors.
    func domain(named name: String) throws -> Known? {
        guard FileProviderDomain.isValid(identifier: name) else { return nil }
        let directory = directory(of: name)
        do {
            guard let record = try DomainRecord(ofReplicaIn: directory) else {
                // The damaged row may be the one with the source.
                return DomainSidecar(in: directory).map { known(name, by: $0, damage: nil) }
            }
            return Known(
                name: name, source: record.source, mountpoint: record.mountpoint,
                options: DomainOptions(json: record.options), isToBeMounted: record.isToBeMounted,
                pending: record.pending)
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

    /// As ``domain(named:)``. If both the database and `domain.json` are damaged, the result has only the name.
    func domainOrItsRemains(named name: String) throws -> Known? {
        do {
            return try domain(named: name)
        } catch let damage as ReplicaDamage {
            return Known(
                name: name, source: "", mountpoint: nil, options: DomainOptions(), damage: damage.description)
        }
    }

    /// Instructions for a domain whose source is lost.
    static func wayOut(of name: String) -> String {
        let word = ShellWord.escaped(name)
        return
            "where its remote is is not known any more: 'yonder mount SOURCE DIR --name \(word)' says it again, then "
            + "'yonder check \(word) --repair' makes a new database; 'yonder remove \(word)' forgets the domain and keeps "
            + "what is on this machine alone"
    }

    /// Writes the sidecar file of a domain whose source was lost.
    func restoreRecord(of name: String, _ sidecar: DomainSidecar) throws {
        try sidecar.write(in: directory(of: name))
    }

    /// The names of all domains, including unreadable ones.
    func names() -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []).sorted().filter { name in
            do {
                return try domain(named: name) != nil
            } catch {
                return true
            }
        }
    }

    /// Stores the options of a domain that is not mounted. Blocks.
    func keepOptions(of known: Known, logger: Logger) throws {
        let directory = directory(of: known.name)
        let replica = try Replica(at: directory, readers: 2, logger: logger)
        defer { try? replica.close() }
        try known.options.keep(in: replica, of: known.source, on: known.mountpoint, directory)
    }

    // MARK: - Room

    var availableBytes: UInt64 {
        guard let statistics = try? FileSystemStatistics(of: stateDirectory) else { return 0 }
        let bytes = statistics.availableBlocks.multipliedReportingOverflow(by: statistics.blockSize)
        return bytes.overflow ? .max : bytes.partialValue
    }

    /// Whether an error is one of a full disk. SQLite and Foundation say that in several ways.
    ///
    /// - Parameter before: how many bytes were free before the call that failed.
    func isForWantOfRoom(_ error: any Error, _ before: UInt64) -> Bool {
        error as? Errno == .noSpace || min(before, availableBytes) < Self.fullBelow
    }

    /// With less than this any error may be one of a full disk.
    private static let fullBelow: UInt64 = 64 << 10

    // MARK: - Coming and going

    /// The default folder for the kept data of removed domains.
    var kept: FilePath { stateDirectory.appending("kept") }

    /// Creates a directory for a replica that is not a domain yet. ``settle(_:)`` finds it after a crash.
    func newStaging(for name: String) throws -> FilePath {
        let place = staging.appending("\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            atPath: place.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return place
    }

    /// Turns a staged replica into a domain, atomically.
    ///
    /// - Throws: what the disk says; the replica is staged then, as before.
    func adopt(_ place: FilePath, as name: String) throws {
        try place.move(to: directory(of: name))
        do {
            try synchronize()
        } catch {
            try? directory(of: name).move(to: place)
            throw error
        }
    }

    /// Whether a folder may hold kept data: one in the state directory may be deleted with it.
    func mayKeep(in place: FilePath) -> Bool {
        func resolved(_ path: FilePath) -> String {
            var (present, missing) = (path.lexicallyNormalized(), [FilePath.Component]())
            while true {
                if let resolved = try? present.resolvingLinks() {
                    return resolved.appending(missing.reversed()).fileNameText
                }
                guard let last = present.lastComponent else { return path.fileNameText }
                missing.append(last)
                present.removeLastComponent()
            }
        }
        let (place, kept) = (resolved(place), resolved(kept))
        return !Mountpoint.contains(resolved(stateDirectory), place)
            || Mountpoint.contains(kept, place) && place != kept
    }

    /// Why a folder can be neither a source nor imported: the domain would show, send and change the daemon's own files, and each change
    /// of its database would be one of the remote; an import would move them. Nil for a folder that can be used, for a source that names
    /// no folder of this machine, and for what is kept of removed domains. Blocks.
    func obstacle(toUsing source: String) -> String? {
        guard let folder = ProviderDescriptor.folder(of: source).map({ FilePath(fileNamed: $0) }) else { return nil }
        if stateDirectory.isInside(folder) {
            return
                "the daemon's own state directory, '\(stateDirectory)', lies in it: choose a folder without it, or set "
                + "YONDER_STATE_DIR to a directory elsewhere"
        }
        guard folder.isInside(stateDirectory), !folder.isInside(kept) else { return nil }
        return "it lies in the daemon's own state directory, '\(stateDirectory)': choose a folder outside of that"
    }

    /// - Throws: `failed` with the ``obstacle(toUsing:)``. Blocks.
    func refuseState(in source: String) throws(ControlError) {
        if let obstacle = obstacle(toUsing: source) { throw ControlError(.failed, obstacle, path: source) }
    }

    /// Notes that a domain will be forgotten: everything that is kept of it is in a folder, and only has to be published.
    func decideToForget(_ name: String, keptIn folder: KeptFolder) throws {
        let directory = directory(of: name)
        try Data(folder.path.fileNameText.utf8).write(to: URL(fileURLWithPath: directory.appending(Self.marker).string))
        // The second file makes the decision: it is the last.
        try Data(folder.work.fileNameText.utf8).write(
            to: URL(fileURLWithPath: directory.appending(Self.decision).string), options: .atomic)
        try synchronize()
    }

    /// The domain stays after all.
    func withdrawDecision(of name: String) {
        try? directory(of: name).appending(Self.decision).unlinkIfPresent()
        try? directory(of: name).appending(Self.marker).unlinkIfPresent()
    }

    /// Forgets a domain on whose removal was decided before it was cut short.
    private func resumeRemoval(of name: String) throws {
        let directory = directory(of: name)
        guard let work = FileManager.default.contents(atPath: directory.appending(Self.decision).string),
            let kept = FileManager.default.contents(atPath: directory.appending(Self.marker).string)
        else { return }
        let place = FilePath(fileNamed: String(decoding: kept, as: UTF8.self))
        let left = FilePath(fileNamed: String(decoding: work, as: UTF8.self))
        do {
            if (try? FileStatus(at: left)) != nil {
                try KeptFolder(at: place, resuming: left).publish()
            } else if (try? FileStatus(at: place.appending("manifest.json"))) == nil {
                throw ControlError(.failed, "what was kept is not there any more", path: place.fileNameText)
            }
        } catch {
            withdrawDecision(of: name)
            throw error
        }
        let mountpoint = (try? domain(named: name))?.mountpoint
        _ = try forget(name, keptIn: place)
        if let mountpoint { Mountpoint.release(mountpoint) }
    }

    /// Forgets a domain, atomically. ``finishRemoval(of:_:)`` does the rest, now or at the next start.
    ///
    /// - Parameter kept: the folder with the kept data, which was decided on; nil if nothing is kept.
    /// - Returns: the new path of the replica.
    func forget(_ name: String, keptIn kept: FilePath?) throws -> FilePath {
        if kept == nil { withdrawDecision(of: name) }
        try FileManager.default.createDirectory(
            atPath: removed.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let place = removed.appending("\(name)-\(UUID().uuidString)")
        try directory(of: name).move(to: place)
        try synchronize()
        return place
    }

    /// Restores the attributes of the kept files and deletes the replica.
    ///
    /// - Parameter report: told why attributes cannot be restored.
    func finishRemoval(of place: FilePath, _ report: (String) -> Void) throws {
        let marker = place.appending(Self.marker)
        if let kept = FileManager.default.contents(atPath: marker.string) {
            let folder = FilePath(fileNamed: String(decoding: kept, as: UTF8.self))
            do {
                try Keeping.restoreAttributes(in: folder)
            } catch {
                report("the files that were kept in '\(folder)' have not got their dates and modes: \(error)")
            }
            // Once: the files are the user's now.
            try marker.unlinkIfPresent()
        }
        try FileManager.default.removeItem(atPath: place.string)
    }

    /// Settles the removals that a crash has interrupted: a domain on whose removal was decided is forgotten, another one stays.
    /// Puts rebuilt databases in their places, without which nothing is known of their domains.
    ///
    /// - Returns: the directories that interrupted removals and imports have left, for ``delete(_:_:)``. Those of later removals and
    ///   imports are not among them.
    func settle(_ report: (String) -> Void) -> [FilePath] {
        for name in names(in: folder) {
            do {
                try ReplicaRebuild.finish(in: directory(of: name.string))
            } catch {
                report("the new database of '\(name)' cannot be put in its place: \(error)")
            }
            do {
                try resumeRemoval(of: name.string)
            } catch {
                report("the removal of '\(name)' was cut short and cannot be finished: \(error)")
            }
        }
        return [removed, staging].flatMap { folder in names(in: folder).map { folder.appending($0) } }
    }

    /// Deletes a directory that ``settle(_:)`` has found, which can take long.
    func delete(_ left: FilePath, _ report: (String) -> Void) {
        do {
            if left.removingLastComponent() == removed {
                try finishRemoval(of: left, report)
            } else {
                try FileManager.default.removeItem(atPath: left.string)
            }
        } catch {
            report("'\(left)' cannot be removed: \(error)")
        }
    }

    /// The names of the domains that interrupted removals and imports were of, and that are not known: what else is stored under them
    /// is of no use.
    ///
    /// - Parameter left: the directories that ``settle(_:)`` has found.
    func unknownNames(of left: [FilePath]) -> Set<String> {
        // `NAME-UUID`
        let added = UUID().uuidString.utf8.count + 1
        let names = left.compactMap { place in
            place.lastComponent.map { String(Substring($0.string.utf8.dropLast(added))) }
        }
        return Set(names).filter { name in
            FileProviderDomain.isValid(identifier: name)
                && !FileManager.default.fileExists(atPath: directory(of: name).string)
        }
    }

    private func names(in folder: FilePath) -> [FilePath.Component] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? [])
            .compactMap { FilePath.Component($0) }
    }

    private static let marker = "kept"
    private static let decision = "keeping"
    private var removed: FilePath { stateDirectory.appending("removed") }
    private var staging: FilePath { stateDirectory.appending("staging") }

    private func synchronize() throws {
        let root = try FileDescriptor.open(stateDirectory, .readOnly, options: [.directory, .closeOnExec])
        defer { try? root.close() }
        try root.syncFileSystem()
    }
}

extension FilePath {
    /// Whether a directory is a folder or lies in it, by whatever path: symbolic links and bind mounts lead to the same inodes.
    fileprivate func isInside(_ folder: FilePath) -> Bool {
        guard let folder = try? FileStatus(following: folder), var place = try? resolvingLinks() else { return false }
        while true {
            if let status = try? FileStatus(at: place), status.device == folder.device, status.inode == folder.inode {
                return true
            }
            guard place.removeLastComponent() else { return false }
        }
    }
}
