/// A command for the daemon. Paths are absolute.
package enum ControlCommand: Codable, Hashable, Sendable {
    case ping
    case mount(MountArguments)
    case unmount(DomainReference)
    /// Returns when the domain is unmounted.
    case follow(DomainReference)
    case domains
    case status(DomainReference?)
    case ls(path: String, isRecursive: Bool)
    case info(path: String)
    case why(path: String)
    case download(paths: [String])
    /// One range of a file, in bytes.
    case downloadRange(path: String, offset: Int64, length: Int64)
    case items(ItemsCommand)
    case evict(paths: [String], isStrict: Bool)
    /// Sets the content policy: `inherited`, `lazy`, `lazyEvictOnRemoteUpdate` or `keepDownloaded`.
    case setPolicy(paths: [String], policy: String)
    case signal(DomainReference?, waits: Bool)
    /// Asks the remote of a mounted domain for its root. Returns when it has answered.
    case probe(DomainReference)
    case pending(DomainReference?)
    /// The text that Prometheus reads.
    case metrics
    /// How much local content was used when last.
    case contentAges(DomainReference?)
    /// Returns when all changes that are pending now have been uploaded.
    case wait(DomainReference?, seconds: Double?, downloads: Bool)
    /// Retries the pending changes of a domain, of one item, or of all domains.
    case retry(DomainReference?)
    case pause(DomainReference)
    case resume(DomainReference)
    case show(DomainReference)
    /// Changes options of a domain, mounted or not. The arguments have neither a source nor a directory.
    case set(DomainReference, MountArguments)
    case conflicts(DomainReference?)
    /// Raises the fetch budget of a process by a number of bytes, or by the default budget.
    case allow(process: Int32, bytes: Int64?)
    /// Streams events; never returns.
    case events(DomainReference?)
    case trash(TrashCommand)
    /// Checks a domain, or all known domains. `comparesContent`: every local file is fetched and compared.
    case check(DomainReference?, comparesContent: Bool, isRepairing: Bool)
    /// Returns when the request is stored, or when the reimport is complete.
    case reimport(path: String, waits: Bool)
    /// Makes a folder the replica of a new domain, and mounts it. `isCopied`: the folder stays as it is.
    /// A daemon that cannot copy has no argument `arguments`, and refuses the command instead of moving the files.
    case importFolder(String, arguments: MountArguments, isCopied: Bool)
    case remove(RemoveArguments)
    /// Returns when the mounts show all that is committed now. Limited, because a process that waits for the remote may hold
    /// the lock of a directory.
    case tellKernel
    /// How much the daemon logs: `debug`, `info`, `notice`, `warning` or `error`.
    case setLogLevel(String)
    case shutdown
    /// Ends the daemon with this process number so that its service manager starts the installed one. That daemon does
    /// not answer: the client repeats the command, and the next daemon, which has another number, answers.
    case restart(worker: Int32)
}

extension ControlCommand {
    /// Whether the command can be repeated after the daemon was killed during it: it only reads, or doing it twice is
    /// as doing it once.
    package var isRepeatable: Bool {
        switch self {
        case .ping, .mount, .follow, .domains, .status, .ls, .info, .why, .download, .downloadRange, .evict, .setPolicy,
            .signal, .probe, .pending, .metrics, .contentAges, .wait, .retry, .pause, .resume, .show, .set, .conflicts,
            .events, .tellKernel, .setLogLevel, .restart:
            true
        // Raising a budget twice doubles it; an item may be another after the first time.
        case .unmount, .items, .allow, .trash, .check, .reimport, .importFolder, .remove, .shutdown:
            false
        }
    }

    /// Whether the command only waits for what happens without it: that the daemon dies during it, however often, is not its doing.
    package var isOnlyWaiting: Bool {
        switch self {
        case .wait, .follow, .events: true
        default: false
        }
    }

    /// The command as it is sent again when so much time has passed: of its timeout, the rest is left.
    package func again(after time: Duration) -> ControlCommand {
        guard case .wait(let domain, let seconds?, let downloads) = self else { return self }
        return .wait(domain, seconds: max(0, seconds - time / .seconds(1)), downloads: downloads)
    }

    /// Whether the command may last until the daemon ends, which must not interrupt it: the client would send it again.
    var endsWithDaemon: Bool {
        switch self {
        case .shutdown, .follow, .events: true
        default: false
        }
    }
}

package enum ControlResult: Codable, Hashable, Sendable {
    case done
    case mounted(DomainSummary)
    case unmounted(UnmountReport)
    case domains([DomainSummary])
    case status(StatusReport)
    case items([ItemInformation])
    case item(ItemInformation)
    case why(WhyReport)
    case transferred(TransferSummary)
    case changed(ItemsReport<ItemInformation>)
    case allowed(ReaderStatus)
    /// The changes were taken in, but for removals that are held.
    case signalled(held: [String])
    case pending([PendingItem])
    case metrics(String)
    case contentAges([ContentAges])
    case options(OptionsReport)
    case conflicts([ConflictCopy])
    case trash(ItemsReport<TrashedItem>)
    case checked([CheckReport])
    case reimported(ReimportReport)
    case imported(ImportReport)
    case removed(RemoveReport)
    case timedOut
}

/// Progress of a command, or an event of a domain.
package struct ControlEvent: Codable, Hashable, Sendable {
    package var path: String
    package var items: Int
    /// The number of completed bytes.
    package var bytes: Int64
    /// The kind of event: `uploading`, `uploaded`, `created`, `deleted`, `failed`, `conflict`, `downloading`, `downloaded`,
    /// `offline`, `online`, `evicted`, `overBudget`, `reimported`, `lost`, `importFinished`; absent for progress.
    package var kind: String?
    /// The time, RFC 3339.
    package var time: String?
    /// The process that caused the event, for example `cat (pid 123)`; absent for Yonder itself.
    package var process: String?

    package init(
        path: String, items: Int, bytes: Int64, kind: String? = nil, time: String? = nil, process: String? = nil
    ) {
        self.process = process
        self.path = path
        self.items = items
        self.bytes = bytes
        self.kind = kind
        self.time = time
    }
}
