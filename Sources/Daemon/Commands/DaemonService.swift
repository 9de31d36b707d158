import Control
import FileProvider
import Foundation
import Logging
import Mount
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

package enum DaemonEnd: Hashable, Sendable {
    case shutdown
    /// The service manager is to start the installed program.
    case restart

    /// The exit status. A service manager starts the daemon again after that of `restart` (`Worker.restartStatus` of
    /// the keeper; RestartForceExitStatus= of systemd).
    package var exitStatus: Int32 {
        switch self {
        case .shutdown: 0
        case .restart: 133
        }
    }
}

extension ControlError {
    /// The error of a command that has failed for a provider's error, for a damaged database, or for want of room; nil for other
    /// errors.
    init?(failure error: any Error, in stateDirectory: FilePath) {
        if let error = error as? ControlError {
            self = error
        } else if let error = error as? FileProviderError {
            self.init(.failed, error.message)
        } else if let damage = ReplicaDamage(error) {
            self.init(
                .failed, "a database is damaged: \(damage); 'yonder check --repair' makes a new one from the remote")
        } else if error as? Errno == .noSpace || (error as? CocoaError)?.code == .fileWriteOutOfSpace {
            self.init(.failed, "the disk with the state directory '\(stateDirectory.fileNameText)' is full")
        } else {
            return nil
        }
    }
}

/// Executes the commands of the control socket.
struct DaemonService: ControlService {
    let domains: Domains
    private let logLevel: AdjustableLogLevel
    private let places: Places
    private let metrics: MetricsRegistry
    /// What is to be told of the daemon itself.
    private let warnings: @Sendable () -> [String]
    private let startedAt = FileTimestamp.now
    /// Ends the daemon; returns at once.
    let end: @Sendable (DaemonEnd) -> Void

    init(
        domains: Domains, places: Places, logLevel: AdjustableLogLevel, metrics: MetricsRegistry,
        warnings: @escaping @Sendable () -> [String],
        end: @escaping @Sendable (DaemonEnd) -> Void
    ) {
        self.domains = domains
        self.places = places
        self.logLevel = logLevel
        self.metrics = metrics
        self.warnings = warnings
        self.end = end
    }

    func perform(
        _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
        part: @escaping @Sendable (ControlResult) async throws -> Void
    ) async throws -> ControlResult {
        do {
            return try await answer(command, for: peer, progress, part)
        } catch {
            throw ControlError(failure: error, in: domains.store.stateDirectory) ?? error
        }
    }

    private func answer(
        _ command: ControlCommand, for peer: ControlPeer, _ progress: @escaping @Sendable (ControlEvent) -> Void,
        _ part: @escaping @Sendable (ControlResult) async throws -> Void
    ) async throws -> ControlResult {
        switch command {
        case .ping:
            return .done
        case .mount(let arguments):
            return .mounted(DomainSummary(try await domains.mount(arguments)))
        case .unmount(let reference):
            // A client that learns of it may end: the unmount goes on.
            progress(ControlEvent(path: reference.path, items: 0, bytes: 0))
            return .unmounted(try await domains.unmount(reference))
        case .follow(let reference):
            let host = try await domains.host(reference)
            await host.waitUntilUnmounted()
            await domains.ended(host)
            return .done
        case .domains:
            return .domains(try await allDomains())
        case .status(let reference):
            return .status(try await status(reference))
        case .ls(let given, let isRecursive):
            let (host, item, path) = try await item(at: given)
            try await ItemReporter(host: host).list(item, path: path, isRecursive: isRecursive) {
                try await part(.items($0))
            }
            return .items([])
        case .info(let given):
            let (host, item, path) = try await item(at: given)
            return .item(try await ItemReporter(host: host).information(on: item, path: path))
        case .why(let given):
            let (host, item, path) = try await item(at: given)
            return .why(WhyReport(path: path, lines: try await WhyExplanation(host: host).lines(for: item)))
        case .download(let paths):
            try check(peer)
            return .transferred(try await transfers(peer, progress).download(paths))
        case .downloadRange(let path, let offset, let length):
            try check(peer)
            return .transferred(try await transfers(peer, progress).download(path, offset: offset, length: length))
        case .items(let command):
            if command.mayFetch { try check(peer) }
            return .changed(try await ItemCommands(domains: domains).perform(command))
        case .evict(let paths, let isStrict):
            return .transferred(try await transfers(peer, progress).evict(paths, isStrict: isStrict))
        case .setPolicy(let paths, let policy):
            if policy == ContentPolicy.keepDownloaded.name { try check(peer) }
            return .transferred(try await transfers(peer, progress).setPolicy(policy, of: paths))
        case .signal(let reference, let waits):
            return .signalled(held: try await signal(reference, waits: waits))
        case .probe(let reference):
            try await domains.host(reference).engine.probe()
            return .done
        case .pending(let reference):
            try await domains.each(reference) { host in
                try await PendingReporter(host: host).list { try await part(.pending($0)) }
            }
            return .pending([])
        case .conflicts(let reference):
            var copies: [ConflictCopy] = []
            try await domains.each(reference) { copies += try PendingReporter(host: $0).conflicts() }
            return .conflicts(copies)
        case .metrics:
            return .metrics(try await metricsText())
        case .contentAges(let reference):
            var ages: [ContentAges] = []
            try await domains.each(reference) { ages.append(try StatusReporter(host: $0).contentAges()) }
            return .contentAges(ages)
        case .wait(let reference, let seconds, let downloads):
            let refusals = try await PendingCommands(domains: domains, progress: progress)
                .wait(reference, within: seconds.map { .fromOutside(seconds: $0) }, downloads: downloads)
            guard let refusals else { return .timedOut }
            return refusals.isEmpty ? .done : .transferred(TransferSummary(refusals: refusals))
        case .retry(let reference):
            try await PendingCommands(domains: domains).retry(reference)
            return .done
        case .pause(let reference):
            try await domains.pause(true, reference)
            return .done
        case .resume(let reference):
            try await domains.pause(false, reference)
            return .done
        case .show(let reference):
            return .options(try await domains.options(of: reference))
        case .set(let reference, let arguments):
            return .options(try await domains.setOptions(of: reference, arguments))
        case .events(let reference):
            await EventReporter.follow(try await domains.events(of: reference), progress)
            return .done
        case .allow(let process, let bytes):
            try check(peer)
            guard let reader = domains.policy.budget.allow(process, bytes: bytes) else {
                throw ControlError(
                    .failed, "nothing was fetched for this process; 'yonder status' shows the processes with fetches",
                    path: "\(process)")
            }
            return .allowed(ReaderStatus(reader))
        case .trash(let command):
            return try await TrashCommands(domains: domains).perform(command)
        case .check(let reference, let comparesContent, let isRepairing):
            if comparesContent { try check(peer) }
            return .checked(
                try await domains.check(reference, comparesContent: comparesContent, isRepairing: isRepairing))
        case .reimport(let path, let waits):
            return .reimported(
                try await ReimportCommand(host: try await domains.mountedHost(of: path), progress: progress)
                    .perform(path, waits: waits))
        case .importFolder(let folder, let arguments, let isCopied):
            return .imported(
                try await domains.importFolder(folder, arguments, isCopied: isCopied, progress: progress))
        case .remove(let arguments):
            return .removed(try await domains.remove(arguments, progress: progress))
        case .tellKernel:
            for host in try await domains.hosts(nil) { await host.tellKernel() }
            return .done
        case .setLogLevel(let name):
            guard let level = Logger.Level(rawValue: name) else {
                throw ControlError(.usage, "'\(name)' is no level: use debug, info, notice, warning or error")
            }
            logLevel.current = level
            return .done
        case .shutdown:
            end(.shutdown)
            await domains.waitUntilShutDown()
            return .done
        case .restart(let worker):
            guard worker == ProcessInfo.processInfo.processIdentifier else { return .done }
            guard domains.manager.keeper != nil else {
                throw ControlError(
                    .failed, "no process would start the daemon again; use 'yonder shutdown', then 'yonder mount'")
            }
            try await UpgradeCheck.run(hasMounts: !domains.mounted.isEmpty)
            end(.restart)
            await domains.waitUntilShutDown()
            return .done
        }
    }

    /// A process that may not cause fetches may not cause them by a command either.
    private func check(_ peer: ControlPeer) throws {
        guard let refusal = domains.policy.refusal(of: peer.processIdentifier)?.reason else { return }
        throw ControlError(.notPermitted, "this process may not download: \(refusal)")
    }

    /// The item at a path, and the path as it is shown. With a slash at the end it is that of a directory.
    private func item(at given: String) async throws -> (DomainHost, ItemRecord, String) {
        let path = PathResolver.withoutSlash(given)
        let host = try await domains.mountedHost(of: path)
        let item = try await PathResolver(host: host).item(at: given)
        await host.engine.settleIdleDownloads()
        return (host, try host.replica.database.known(item.localIdentifier) ?? item, path)
    }

    private func transfers(
        _ peer: ControlPeer, _ progress: @escaping @Sendable (ControlEvent) -> Void
    ) -> TransferCommands {
        TransferCommands(
            domains: domains,
            request: Requester(
                processIdentifier: peer.processIdentifier, userIdentifier: peer.userIdentifier, groupIdentifier: 0
            ).request(.download),
            progress: progress)
    }

    private func allDomains() async throws -> [DomainSummary] {
        let mounted = await domains.mounted.map(DomainSummary.init)
        let (known, unreadable) = domains.store.all()
        let others = known.filter { known in !mounted.contains { $0.name.utf8.elementsEqual(known.name.utf8) } }.map {
            DomainSummary(
                name: $0.name, source: $0.source, mountpoint: $0.mountpoint, isMounted: false,
                isToBeMounted: $0.isToBeMounted, unsent: $0.pending)
        }
        // `yonder status` names those without room.
        let isWaiting = await !domains.withoutRoom.isEmpty
        guard unreadable.isEmpty || !mounted.isEmpty || !others.isEmpty || isWaiting else {
            throw ControlError(.failed, unreadable.joined(separator: "; "))
        }
        return (mounted + others).sorted { $0.name < $1.name }
    }

    private func status(_ reference: DomainReference?) async throws -> StatusReport {
        var report = StatusReport(
            daemon: DaemonStatus(
                worker: ProcessInfo.processInfo.processIdentifier, keeper: domains.manager.keeper,
                startedAt: Timestamp.text(startedAt), restarts: domains.manager.restarts, warnings: warnings(),
                withoutRoom: await domains.wantsOfRoom, stateDirectory: places.stateDirectory),
            readers: [])
        try await domains.each(reference) { report.domains.append(try await StatusReporter(host: $0).status()) }
        let domain = reference == nil ? nil : report.domains.first?.name
        report.readers = domains.policy.budget.readers(limit: 5, of: domain).map(ReaderStatus.init)
        return report
    }

    /// What Prometheus reads.
    func metricsText() async throws -> String {
        var conflicts: [String: Int] = [:]
        try await domains.each(nil) { conflicts[$0.name] = try $0.replica.database.conflictCopies().count }
        return MetricsReport(
            registry: metrics, status: try await status(nil), conflicts: conflicts, startedAt: startedAt,
            usage: .current
        ).text
    }

    /// Refreshes one domain or all mounted domains.
    ///
    /// - Returns: that removals are held, for each domain where they are, if the changes were waited for.
    private func signal(_ reference: DomainReference?, waits: Bool) async throws -> [String] {
        var held: [String] = []
        do {
            try await domains.each(reference) { host in
                guard waits else { return host.engine.signal() }
                try await host.engine.refresh()
                // The changes must be visible on the mount when the command returns.
                await host.mounted.drainNotifications()
                if let warning = host.engine.heldRemovals { held.append("\(host.name): \(warning)") }
            }
        } catch let error as ControlError where !held.isEmpty {
            throw ControlError(error.code, ([error.message] + held).joined(separator: "; "))
        }
        return held
    }
}
