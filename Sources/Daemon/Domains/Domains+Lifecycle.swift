import Control
import FileNames
import FileProvider
import Foundation
import Logging
import ProviderDescriptors
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

extension Domains {
    // MARK: - Removing

    /// Removes a domain and its mount, and keeps the requested data. The domain stays unchanged until the data is on
    /// the disk.
    ///
    /// - Throws: `failed` if the domain is unknown or in use, or if data would be lost that exists only on this
    ///   machine; disk errors.
    func remove(
        _ arguments: RemoveArguments, progress: @escaping @Sendable (ControlEvent) -> Void
    ) async throws -> RemoveReport {
        let name = try await acquire { try knownName(arguments.domain) }
        defer { release(name) }
        // Before anything is unmounted.
        if let directory = arguments.directory {
            let place = FilePath(fileNamed: directory)
            guard store.mayKeep(in: place) else {
                throw ControlError(
                    .failed, "it lies in the daemon's own state directory, which is no place to keep data",
                    path: directory)
            }
            guard host(containing: directory).map({ $0.name != name }) ?? true else {
                throw ControlError(.failed, "it lies in the mount that is to be removed", path: directory)
            }
            try KeptFolder.check(place)
        }
        if let host = hosts[name] {
            try host.checkUncovered()
            if !arguments.isForced { try await refuseOpenFiles(of: host) }
            do {
                try host.engine.noteWrittenFiles()
                _ = try plan(arguments, try host.replica.unsynced(), name)
            } catch {
                // For a damaged database this is checked again after the rebuild.
                guard ReplicaDamage(error) != nil else { throw error }
            }
            await stop(host)
        }
        guard let known = try store.domainOrItsRemains(named: name) else {
            throw ControlError(.failed, "no such domain", path: name)
        }
        // Before the domain is forgotten, because the mount could not be found afterwards.
        try await detachDeadMount(of: known)
        let (store, catalog, logger) = (store, catalog, logger)
        // Copying the kept data blocks on the disk.
        let report: RemoveReport = try await BlockingWork.run {
            let replica = try openForRemoval(store.directory(of: name), logger)
            var report: RemoveReport
            var folder: KeptFolder?
            do {
                let unsynced = try replica.unsynced()
                let keep = try plan(arguments, unsynced, name)
                report = RemoveReport(name: name, keep: keep, directory: nil, files: 0, bytes: 0)
                if keep == .downloaded || keep == .dirty && unsynced.isAnything {
                    let place = try KeptFolder(at: keptPath(arguments.directory, name, in: store))
                    folder = place
                    let kept = try keepData(
                        of: replica, onlyDirty: keep == .dirty, in: place, domain: name, source: known.source, progress)
                    (report.directory, report.files, report.bytes) = (place.path.fileNameText, kept.files, kept.bytes)
                    report.notKept = kept.notKept.map { "'\($0.path)' is \($0.what)" }
                    report.refusals = kept.notKept.map {
                        Refusal(
                            path: "\(place.path.fileNameText)/\($0.path)", code: "notKept",
                            reason: "not kept: it is \($0.what)")
                    }
                }
                try replica.close()
            } catch {
                folder?.discard()
                try? replica.close()
                throw error
            }
            if let folder {
                do {
                    try store.decideToForget(name, keptIn: folder)
                    try folder.publish()
                } catch {
                    store.withdrawDecision(of: name)
                    folder.discard()
                    throw notKept(error, name, folder.path)
                }
            }
            let rest = try store.forget(name, keptIn: folder?.path)
            if let directory = known.mountpoint { Mountpoint.release(directory) }
            catalog.credentials.forget(name)
            do {
                try store.finishRemoval(of: rest) { logger.warning("\($0)") }
            } catch {
                logger.warning("'\(rest)' will be deleted at the next start: \(error)")
            }
            return report
        }
        withoutRoom[name] = nil
        return report
    }

    private func knownName(_ reference: DomainReference) throws -> String {
        if hosts[reference.text] != nil { return reference.text }
        // Reports the damage if the database of this domain is damaged.
        if try store.domainOrItsRemains(named: reference.text) != nil { return reference.text }
        if let name = name(of: reference) { return name }
        throw unknownDomain(reference, .failed)
    }

    private func refuseOpenFiles(of host: DomainHost) async throws {
        for number in host.volume.openNumbers {
            let path = PathResolver(host: host).path(of: number) ?? "inode \(number)"
            let holders = try await BlockingWork.run {
                OpenHolders(mountpoint: host.place.fileNameText, inode: number).find()
            }
            let who = holders.isEmpty ? "" : " by " + holders.map(\.description).joined(separator: ", ")
            throw ControlError(.failed, "it is open\(who); close it, or remove with --force", path: path)
        }
    }

    // MARK: - Importing

    /// Imports a folder as the replica of a new domain, and mounts it.
    ///
    /// - Parameter isCopied: whether the folder stays as it is, also where its files could be moved.
    /// - Throws: `failed` with the reason; the folder is then unchanged, or the reason says that the domain was made.
    func importFolder(
        _ folder: String, _ arguments: MountArguments, isCopied: Bool,
        progress: @escaping @Sendable (ControlEvent) -> Void
    ) async throws -> ImportReport {
        guard let source = arguments.source, let directory = arguments.directory else {
            throw ControlError(.usage, "give the source and the directory to mount on", path: folder)
        }
        let name = arguments.name ?? FilePath(fileNamed: directory).lastComponent?.string ?? "domain"
        try Self.checkName(name)
        await acquire(name)
        defer { release(name) }
        // Another domain may be about to be mounted there.
        await acquire(directory)
        defer { release(directory) }
        guard !isShuttingDown else { throw Self.shutdownError }
        guard hosts[name] == nil, try store.domain(named: name) == nil else {
            throw ControlError(.failed, "there is a domain of this name; choose another with --name", path: name)
        }
        let mounted = Array(hosts.values.map(\.mountpoint.fileNameText))
        try refuseOther(on: directory)
        let (store, catalog, logger) = (store, catalog, logger)
        let domain = FileProviderDomain(identifier: name, source: source)
        let options = DomainOptions().merging(arguments)
        try ProviderCatalog.check(options, of: source)
        let imported: ImportedFolder
        let findings: ProviderFindings?
        do {
            let isTaken = try await BlockingWork.run {
                try checkFolder(folder, source, directory, isCopied: isCopied, in: store, mounted: mounted)
            }
            findings = try await checkProvider(of: domain, options, arguments.credentials, in: store, catalog, logger)
            imported = try await BlockingWork.run {
                try store.importFolder(
                    FilePath(fileNamed: folder), as: domain, mountpoint: directory, options: options, isTaken: isTaken,
                    logger: logger
                ) { now in
                    progress(ControlEvent(path: folder, items: now.items, bytes: now.bytes))
                }
            }
        } catch {
            // A domain whose files are still in the folder, too, was made and needs them.
            if !FileManager.default.fileExists(atPath: store.directory(of: name).string) {
                catalog.credentials.forget(name)
            }
            switch error {
            case let error as FileProviderError: throw ControlError(.failed, error.message, path: source)
            case let error as ControlError: throw error
            default:
                throw ControlError(.failed, "cannot be imported and is unchanged: \(reason(of: error))", path: folder)
            }
        }
        let host: DomainHost
        do {
            host = try await begin(
                MountRequest(name: name, source: source, mountpoint: directory, options: options), findings: findings)
        } catch {
            let cause = error is ControlError ? "\(error)" : reason(of: error)
            throw ControlError(
                .failed, "imported as the domain '\(name)', which cannot be mounted: \(cause)", path: folder)
        }
        return ImportReport(
            domain: DomainSummary(host), items: imported.summary.items, bytes: imported.summary.bytes,
            isTaken: imported.isTaken, left: imported.left)
    }
}

/// Opens the replica of a domain for its removal. A damaged database is rebuilt; local data is then in the replica's
/// folder `recovered`, which is kept.
private func openForRemoval(_ directory: FilePath, _ logger: Logger) throws -> Replica {
    do {
        return try Replica(at: directory, readers: 4, logger: logger)
    } catch let damage as ReplicaDamage {
        logger.warning("the database in '\(directory)' is damaged: \(damage)")
        _ = try ReplicaRebuild.run(in: directory, isForRemoval: true, logger: logger)
        return try Replica(at: directory, readers: 4, logger: logger)
    }
}

/// Decides what a removal keeps.
///
/// - Throws: `failed` if data would be lost that exists only on this machine, without `--force`.
private func plan(_ arguments: RemoveArguments, _ unsynced: UnsyncedSummary, _ name: String) throws -> KeptData {
    let keep = arguments.keep ?? (unsynced.isAnything ? .dirty : .none)
    guard keep == .none, unsynced.isAnything, !arguments.isForced else { return keep }
    throw ControlError(
        .failed,
        "not on the remote: \(unsynced.items + unsynced.recovered) of the items here; "
            + "'--keep dirty' keeps them, '--force' lets them go", path: name)
}

extension UnsyncedSummary {
    fileprivate var isAnything: Bool { items + recovered > 0 }
}

/// Fills a folder with what is kept of a domain.
///
/// - Throws: `failed` with the reason.
private func keepData(
    of replica: Replica, onlyDirty: Bool, in folder: KeptFolder, domain name: String, source: String,
    _ progress: (ControlEvent) -> Void
) throws -> KeptSummary {
    do {
        var keeping = Keeping(replica, in: folder.work, onlyDirty: onlyDirty)
        return try keeping.run(domain: name, source: source) { now in
            progress(ControlEvent(path: folder.path.fileNameText, items: now.items, bytes: now.bytes))
        }
    } catch {
        throw notKept(error, name, folder.path)
    }
}

private func notKept(_ error: any Error, _ name: String, _ place: FilePath) -> any Error {
    let reason =
        switch error {
        case let error as Errno: "what is to be kept cannot be written there: \(error)"
        case let error as ControlError: error.message
        default: ""
        }
    guard !reason.isEmpty else { return error }
    return ControlError(
        .failed,
        "\(reason). '\(name)' still has everything, and is unmounted: run the command again, with --to for another folder, or "
            + "'yonder mount \(ShellWord.escaped(name))'", path: place.fileNameText)
}

private func keptPath(_ directory: String?, _ name: String, in store: DomainStore) -> FilePath {
    if let directory { return FilePath(fileNamed: directory) }
    let time = Timestamp.text(seconds: Int64(Date.now.timeIntervalSince1970), nanoseconds: 0).prefix(19)
    return store.kept.appending("\(name)-\(time)").unused
}

extension FilePath {
    /// The path, with a number appended if it exists.
    fileprivate var unused: FilePath {
        for number in 1... {
            let path = number == 1 ? self : FilePath(string + "-\(number)")
            if !FileManager.default.fileExists(atPath: path.string) { return path }
        }
        return self
    }
}

/// Checks the preconditions of an import.
///
/// - Returns: whether the files are moved instead of copied.
private func checkFolder(
    _ folder: String, _ source: String, _ directory: String, isCopied: Bool, in store: DomainStore, mounted: [String]
) throws -> Bool {
    func refuse(_ reason: String) -> ControlError { ControlError(.failed, reason, path: folder) }
    guard let status = try? FileStatus(at: FilePath(fileNamed: folder)), status.kind == .directory else {
        throw refuse("no such folder")
    }
    guard FilePath(fileNamed: folder).lastComponent != nil else {
        throw refuse("the root directory cannot be imported")
    }
    let isSame = Mountpoint.contains(folder, directory) && Mountpoint.contains(directory, folder)
    guard isSame || !Mountpoint.contains(folder, directory) else {
        throw refuse("it contains the directory to mount on; mount on the folder itself, or outside of it")
    }
    guard isSame || !Mountpoint.contains(directory, folder) else {
        throw refuse("it lies in the directory to mount on")
    }
    if let source = ProviderDescriptor.folder(of: source) {
        guard !Mountpoint.contains(folder, source), !Mountpoint.contains(source, folder) else {
            throw refuse("it and the source '\(source)' contain each other")
        }
    }
    for path in [folder, source] { try store.refuseState(in: path) }
    for mount in mounted where Mountpoint.contains(mount, folder) || Mountpoint.contains(folder, mount) {
        throw refuse("'\(mount)' is a mount of Yonder; import a folder outside of it")
    }
    let state = store.kept.removingLastComponent()
    let isTaken = try !isCopied && FileStatus(at: state).device == status.device
    if isSame {
        guard !isCopied else { throw refuse("a copy leaves it as it is: mount on another directory") }
        guard isTaken else {
            throw refuse("it lies on another file system than the state, and so cannot be mounted on itself")
        }
    } else {
        try Mountpoint(directory, source: source).giveUp()
    }
    return isTaken
}

/// Verifies that the source can be reached and written. Stores the credentials if they work.
///
/// - Returns: what was detected about the remote.
private func checkProvider(
    of domain: FileProviderDomain, _ options: DomainOptions, _ given: GivenCredentials?, in store: DomainStore,
    _ catalog: ProviderCatalog, _ logger: Logger
) async throws -> ProviderFindings? {
    let given = given?.replacing(nil)
    let findings = try await catalog.tryOut(domain, options, given: given)
    // First: after a crash the credentials are found by it.
    let place = try store.newStaging(for: domain.identifier)
    defer { try? FileManager.default.removeItem(atPath: place.string) }
    catalog.credentials.forget(domain.identifier)
    if let given { try catalog.credentials.keep(given, of: domain.identifier) }
    let replica = try Replica(at: place, readers: 2, logger: logger)
    defer { try? replica.close() }
    let provider = try catalog.provider(
        for: DomainManager(domain: domain, stateDirectory: place, replica: replica, logger: logger), options,
        findings)
    let canWrite = provider.features.writing
    await provider.invalidate(within: .seconds(2))
    guard canWrite else { throw FileProviderError(.featureUnsupported, "this source cannot be written") }
    return findings
}
