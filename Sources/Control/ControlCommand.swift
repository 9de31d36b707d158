/// What a client asks of the daemon. Paths are absolute.
package enum ControlCommand: Codable, Hashable, Sendable {
    case ping
    case mount(MountArguments)
    case unmount(DomainReference)
    /// Answered when the domain is unmounted.
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
    /// Gives items a content policy: `inherited`, `lazy`, `lazyEvictOnRemoteUpdate` or `keepDownloaded`.
    case setPolicy(paths: [String], policy: String)
    case signal(DomainReference?, waits: Bool)
    case pending(DomainReference?)
    /// Answered when everything that was pending is on the remote.
    case wait(DomainReference?, seconds: Double?, downloads: Bool)
    /// Everything that waits in a domain, or one item's changes, or everything.
    case retry(DomainReference?)
    case pause(DomainReference)
    case resume(DomainReference)
    case conflicts(DomainReference?)
    /// Lets a process have more fetched: so many bytes, or its usual budget once more.
    case allow(process: Int32, bytes: Int64?)
    /// What happens, as it happens; never answered.
    case events(DomainReference?)
    case trash(TrashCommand)
    case check(CheckArguments)
    /// Answered when it is accepted, or when it is complete.
    case reimport(path: String, waits: Bool)
    case importFolder(ImportArguments)
    case remove(RemoveArguments)
    case shutdown
}

/// What the daemon answers once a command is done.
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
    case changed(ItemsReport)
    case allowed(ReaderStatus)
    case pending([PendingItem])
    case conflicts([ConflictCopy])
    case trash(TrashReport)
    case checked([CheckReport])
    case reimported(ReimportReport)
    case imported(ImportReport)
    case removed(RemoveReport)
    /// The time was over before.
    case timedOut
}

/// What happens while a command runs.
package struct ControlEvent: Codable, Hashable, Sendable {
    /// The item that it is about.
    package var path: String
    /// How many items are done.
    package var items: Int
    /// How many bytes are done.
    package var bytes: Int64
    /// What happened: `uploading`, `uploaded`, `deleted`, `pending`, `failed`, `downloading`,
    /// `downloaded`, `evicted`, `overBudget`, `reimported`, `lost`, `importFinished`; absent for progress.
    package var kind: String?
    /// When, RFC 3339.
    package var time: String?
    /// The process that caused it, such as `cat (pid 123)`; absent for Yonder itself.
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
