import FileProvider
import Foundation
import Logging
import Mount
import Replica
import Sync
import Synchronization
import Syscalls
import SystemPackage
import Volume

/// A domain that is mounted: replica, volume, engine, provider and mount, put together.
package final class DomainHost: Sendable {
    package let name: String
    package let source: String
    package let mountpoint: FilePath
    package let replica: Replica
    package let engine: SyncEngine
    let volume: Volume
    let mounted: MountedVolume
    private let present: Mutex<DomainOptions>
    /// How much each process may have fetched.
    let budget: FetchBudget
    private let kernel: KernelForgetting
    private let directory: FilePath
    /// Names that are never sent, in any domain.
    private let ignoredNames: IgnoredNames
    private let hasStopped = Mutex(false)

    /// Makes a provider for a domain.
    package typealias ProviderMaker =
        @Sendable (any FileProviderManager) throws -> any FileProviderReplicatedExtension

    /// Opens a domain's replica, or makes a new one, and mounts it. When this returns, the mount can be used. Blocks for
    /// as long as the disk does, and the provider's maker.
    ///
    /// - Parameters:
    ///   - directory: holds the replica.
    ///   - mountpoint: an empty directory.
    ///   - gatekeeper: decides which processes may have something fetched; nil for the usual rules.
    ///   - ignoredNames: names that are never sent, beside those of the options.
    /// - Throws: ``FileProviderError``: what the provider says, `posix` with what `mount` says; what the replica says.
    package init(
        domain: FileProviderDomain, directory: FilePath, mountpoint: FilePath, options: DomainOptions,
        gatekeeper: Gatekeeper? = nil, ignoredNames: IgnoredNames = .usual, logger: Logger,
        makeProvider: ProviderMaker
    ) throws {
        let gatekeeper = gatekeeper ?? Gatekeeper(rules: .usual, logger: logger)
        var domain = domain
        domain.isReadOnly = options.isReadOnly
        var logger = logger
        logger[metadataKey: "domain"] = "\(domain.identifier)"
        let replica = try Replica(at: directory, readers: MountedVolume.threads + Self.otherReaders, logger: logger)
        do {
            let providerState = directory.appending("provider")
            try providerState.makeDirectory()
            let manager = DomainManager(domain: domain, stateDirectory: providerState, replica: replica, logger: logger)
            let provider = try makeProvider(manager)
            let isReadOnly = options.isReadOnly || !provider.features.writing
            var ignoredNames = ignoredNames
            ignoredNames.sendsByteNames = provider.features.byteNames
            try replica.ignore(ignoredNames.adding(options))
            let kernel = KernelForgetting()
            let closing = ClosedInodes()
            let volume = Volume(
                replica: replica,
                ownership: Ownership(user: Machine.userIdentifier, group: Machine.groupIdentifier),
                isReadOnly: isReadOnly,
                waitsForRemote: options.waitsForRemote ?? false, logger: logger,
                didClose: { closing.engine?.inodeWasClosed($0) },
                didOpenDirectory: { number, caller in
                    Task {
                        // What may have nothing fetched has nothing fetched ahead of it either.
                        guard gatekeeper.refusal(of: caller?.processIdentifier) == nil else { return }
                        closing.engine?.directoryWasOpened(number)
                    }
                },
                didMissName: { closing.engine?.nameWasMissed(in: $0) },
                didOpenFile: { closing.engine?.inodeWasOpened($0) },
                remoteRoom: { closing.engine?.quota.present },
                didChange: { effects in
                    for defect in effects.defects { closing.engine?.warnings.report(defect) }
                    kernel.forget(effects.invalidations)
                    closing.engine?.localChange()
                })
            let engine = SyncEngine(
                provider: provider, replica: replica, open: volume.openInodes, kernel: kernel,
                polling: options.polling(wherever: provider.features.changeFeed), domainName: domain.identifier,
                isReadOnly: isReadOnly, cacheLimits: options.cacheLimits, accounting: gatekeeper.budget,
                conflictLabel: Replica.conflictLabel, logger: logger)
            if options.isPaused == true { engine.connection.pause(true) }
            closing.attach(engine)
            manager.attach(engine)
            let mounted = try MountedVolume(
                volume: volume, source: MountPlace.source(of: domain.identifier), rights: options.mountRights,
                provisioning: Provisioner(engine: engine, gatekeeper: gatekeeper, domain: domain.identifier),
                // For tests of what happens where the kernel or the rights do not allow it.
                allowsPassthrough: ProcessInfo.processInfo.environment["YONDER_PASSTHROUGH"] != "0")
            do {
                try mounted.mount(at: mountpoint)
            } catch {
                throw FileProviderError.posix(error, "cannot mount on '\(mountpoint)': \(error)")
            }
            // What was said is kept once it has worked.
            try replica.database.set(.source, to: domain.source)
            try replica.database.set(.mountpoint, to: mountpoint.string)
            try options.keep(in: replica, of: domain.source, on: mountpoint.string, directory)
            name = domain.identifier
            source = domain.source
            self.mountpoint = mountpoint
            present = Mutex(options)
            self.directory = directory
            self.ignoredNames = ignoredNames
            self.replica = replica
            self.engine = engine
            self.volume = volume
            budget = gatekeeper.budget
            self.mounted = mounted
            self.kernel = kernel
            kernel.attach(mounted)
            manager.attach(self)
            engine.start()
        } catch {
            try? replica.close()
            throw error
        }
    }

    /// Readers of the database that are no threads of the mount: the engine, the provider and the control socket.
    private static let otherReaders = 6

    /// How the domain is mounted.
    var options: DomainOptions { present.withLock { $0 } }

    /// Applies other options, and keeps them. Whether it is read-only, and where the remote is, stays as it is until it is
    /// mounted anew.
    func apply(_ options: DomainOptions) async throws {
        try options.keep(in: replica, of: source, on: mountpoint.string, directory)
        let old = present.withLock { present in
            defer { present = options }
            return present
        }
        if options.cacheLimits != old.cacheLimits { await engine.keep(to: options.cacheLimits) }
        if options.pollSeconds != old.pollSeconds {
            engine.poll(options.polling(wherever: engine.hasChangeFeed))
        }
        volume.waitsForRemote = options.waitsForRemote ?? false
        if options.ignoredNames ?? [] != old.ignoredNames ?? [] {
            try replica.ignore(ignoredNames.adding(options))
            engine.localChange()
        }
    }

    /// Leaves the remote alone, or goes on, and keeps that for later mounts.
    func pause(_ isPaused: Bool) async throws {
        var options = options
        options.isPaused = isPaused ? true : nil
        try await apply(options)
        await engine.pause(isPaused)
    }

    /// Which inodes processes have open.
    package var openInodes: any OpenInodes { volume.openInodes }

    /// Whether the mount is there.
    package var isMounted: Bool { mounted.isMounted }

    /// Takes the mount away and closes the replica. What is pending stays for the next time. Never waits for a remote
    /// that does not answer.
    package func stop() async {
        let isFirst = hasStopped.withLock { hasStopped in
            defer { hasStopped = true }
            return !hasStopped
        }
        guard isFirst else { return await mounted.waitUntilEnded() }
        kernel.attach(nil)
        // What waits for the provider is answered first: nothing on the mount may hang because the mount goes.
        await engine.stop()
        try? mounted.unmount()
        let isDone = await Self.within(.seconds(1)) { [mounted] in await mounted.waitUntilEnded() }
        if !isDone { mounted.abort() }
        mounted.settle()
        try? replica.close()
    }

    /// Returns when the mount has gone, whoever took it away.
    package func waitUntilUnmounted() async {
        await mounted.waitUntilEnded()
    }

    /// Returns when the kernel has forgotten what was changed up to now. Until then a process may still come to an item by
    /// the name that it had, and write into it.
    ///
    /// A process that waits for the remote with a directory locked is not waited for longer than for a moment.
    package func tellKernel() async {
        _ = await Self.within(Self.timeForKernel) { [mounted] in await mounted.drainNotifications() }
    }

    private static let timeForKernel = Duration.seconds(5)

    private static func within(_ time: Duration, _ body: @escaping @Sendable () async -> Void) async -> Bool {
        let task = Task { await body() }
        return await withTaskGroup(of: Bool.self) { group in
            let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
            Task {
                await task.value
                continuation.yield(true)
                continuation.finish()
            }
            group.addTask {
                for await isDone in stream { return isDone }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: time)
                return false
            }
            let isDone = await group.next() ?? false
            continuation.finish()
            group.cancelAll()
            return isDone
        }
    }
}

extension DomainOptions {
    func keep(
        in replica: Replica, of source: String, on mountpoint: String?, _ directory: FilePath
    ) throws {
        try replica.database.set(.options, to: json)
        let sidecar = DomainSidecar(source: source, mountpoint: mountpoint, options: json)
        // What is as it was needs no room on a full disk.
        guard DomainSidecar(in: directory) != sidecar else { return }
        try replica.database.withReserve { try sidecar.write(in: directory) }
    }
}

extension IgnoredNames {
    /// With those of one domain.
    fileprivate func adding(_ options: DomainOptions) -> IgnoredNames {
        IgnoredNames(patterns + (options.ignoredNames ?? []), sendsByteNames: sendsByteNames)
    }
}

/// Tells the engine of what happens in the volume, which is made before it.
private final class ClosedInodes: Sendable {
    private let state = Mutex<SyncEngine?>(nil)

    func attach(_ engine: SyncEngine) {
        state.withLock { $0 = engine }
    }

    var engine: SyncEngine? { state.withLock { $0 } }
}
