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

/// A domain, by its name or by a path in its mount.
package struct DomainReference: Codable, Hashable, Sendable {
    /// What the user wrote.
    package var text: String
    /// The same as an absolute path.
    package var path: String

    package init(text: String, path: String) {
        self.text = text
        self.path = path
    }
}

/// How to mount: a source on a directory, or a known domain where it was.
package struct MountArguments: Codable, Hashable, Sendable {
    /// Nil for a known domain.
    package var source: String?
    package var directory: String?
    /// The domain's name; with a source, nil for one made of the directory's.
    package var name: String?
    /// In bytes; nil for as before.
    package var cacheLimit: Given<Int64>?
    /// Nil for as before.
    package var pollSeconds: Given<Double>?
    /// Whether every change is refused; nil for as before.
    package var isReadOnly: Bool?
    /// How long content is kept that nobody opens; nil for as before.
    package var cacheSeconds: Given<Double>?
    /// Whether `fsync` waits for the remote; nil for as before.
    package var waitsForRemote: Bool?
    /// Names that are never sent; nil for those of before.
    package var ignoredNames: [String]?
    /// Whether other users may use the mount; nil for as before.
    package var allowsOthers: Bool?
    /// Whether device files in the mount can be opened; nil for as before.
    package var allowsDevices: Bool?
    /// Whether set-user-ID and set-group-ID bits and file capabilities in the mount count; nil for as before.
    package var allowsSetID: Bool?
    /// Who the remote is to let in; nil for whom it let in before. Never logged.
    package var credentials: GivenCredentials?
    /// Where an object store is, as far as the source does not say so; nil for where it was before.
    package var objectStore: ObjectStoreOptions?

    package init(
        source: String?, directory: String?, name: String?, cacheLimit: Given<Int64>? = nil,
        pollSeconds: Given<Double>? = nil, isReadOnly: Bool? = nil, cacheSeconds: Given<Double>? = nil,
        waitsForRemote: Bool? = nil,
        ignoredNames: [String]? = nil, allowsOthers: Bool? = nil, allowsDevices: Bool? = nil, allowsSetID: Bool? = nil,
        credentials: GivenCredentials? = nil, objectStore: ObjectStoreOptions? = nil
    ) {
        self.cacheSeconds = cacheSeconds
        self.waitsForRemote = waitsForRemote
        self.ignoredNames = ignoredNames
        self.allowsOthers = allowsOthers
        self.allowsDevices = allowsDevices
        self.allowsSetID = allowsSetID
        self.source = source
        self.directory = directory
        self.name = name
        self.cacheLimit = cacheLimit
        self.pollSeconds = pollSeconds
        self.isReadOnly = isReadOnly
        self.credentials = credentials
        self.objectStore = objectStore
    }
}

/// What an option was given: a value, or that it is as if it had never been given.
package enum Given<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    case value(Value)
    case none

    /// The value, or nil where none is wanted.
    package var value: Value? {
        if case .value(let value) = self { value } else { nil }
    }
}

/// Where an object store is, and who is meant to ask it. Nothing of it is secret.
package struct ObjectStoreOptions: Codable, Hashable, Sendable {
    /// `https://HOST:PORT`; nil for Amazon's own.
    package var endpoint: String?
    package var region: String?
    /// In `~/.aws`.
    package var profile: String?

    package init(endpoint: String? = nil, region: String? = nil, profile: String? = nil) {
        self.endpoint = endpoint
        self.region = region
        self.profile = profile
    }

    /// What is said by others, where this says nothing.
    package func merging(_ others: ObjectStoreOptions?) -> ObjectStoreOptions {
        ObjectStoreOptions(
            endpoint: endpoint ?? others?.endpoint, region: region ?? others?.region,
            profile: profile ?? others?.profile)
    }
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
