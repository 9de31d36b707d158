/// A domain in a list.
package struct DomainSummary: Codable, Hashable, Sendable {
    package var name: String
    package var source: String
    package var mountpoint: String?
    package var isMounted: Bool

    package init(name: String, source: String, mountpoint: String?, isMounted: Bool) {
        self.name = name
        self.source = source
        self.mountpoint = mountpoint
        self.isMounted = isMounted
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(source, forKey: .source)
        try container.encode(mountpoint, forKey: .mountpoint)
        try container.encode(isMounted, forKey: .isMounted)
    }
}

/// What was left when a domain was unmounted.
package struct UnmountReport: Codable, Hashable, Sendable {
    package var name: String
    /// How many changes are not on the remote yet.
    package var pending: Int

    package init(name: String, pending: Int) {
        self.name = name
        self.pending = pending
    }
}

/// The daemon and its mounted domains.
package struct StatusReport: Codable, Hashable, Sendable {
    package var version: String
    package var domains: [DomainStatus]
    /// The processes that had most fetched by reading, since the daemon began; those that are gone left out.
    package var readers: [ReaderStatus]?

    package init(version: String, domains: [DomainStatus], readers: [ReaderStatus]? = nil) {
        self.readers = readers
        self.version = version
        self.domains = domains
    }
}

/// How much a process had fetched.
package struct ReaderStatus: Codable, Hashable, Sendable {
    package var process: Int32
    /// What it is called.
    package var name: String
    package var fetched: Int64
    /// How much it may have; null for as much as it likes.
    package var limit: Int64?
    /// Whether it gets no more.
    package var isRefused: Bool

    package init(process: Int32, name: String, fetched: Int64, limit: Int64?, isRefused: Bool) {
        self.process = process
        self.name = name
        self.fetched = fetched
        self.limit = limit
        self.isRefused = isRefused
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(process, forKey: .process)
        try container.encode(name, forKey: .name)
        try container.encode(fetched, forKey: .fetched)
        try container.encode(limit, forKey: .limit)
        try container.encode(isRefused, forKey: .isRefused)
    }
}

/// How a mounted domain is.
package struct DomainStatus: Codable, Hashable, Sendable {
    package enum Connection: String, Codable, Hashable, Sendable {
        case online
        case offline
        case unauthenticated
        case paused
    }

    package struct Items: Codable, Hashable, Sendable {
        package var known: Int
        package var materializedFiles: Int
        package var materializedDirectories: Int

        package init(known: Int, materializedFiles: Int, materializedDirectories: Int) {
            self.known = known
            self.materializedFiles = materializedFiles
            self.materializedDirectories = materializedDirectories
        }
    }

    package struct Bytes: Codable, Hashable, Sendable {
        package var local: Int64
        /// Nil for no limit.
        package var limit: Int64?

        package init(local: Int64, limit: Int64?) {
            self.local = local
            self.limit = limit
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(local, forKey: .local)
            try container.encode(limit, forKey: .limit)
        }
    }

    package struct Pending: Codable, Hashable, Sendable {
        package var items: Int
        package var bytes: Int64

        package init(items: Int, bytes: Int64) {
            self.items = items
            self.bytes = bytes
        }
    }

    package struct Transfer: Codable, Hashable, Sendable {
        package var path: String
        /// `download` or `upload`.
        package var direction: String
        package var done: Int64
        package var total: Int64

        package init(path: String, direction: String, done: Int64, total: Int64) {
            self.path = path
            self.direction = direction
            self.done = done
            self.total = total
        }
    }

    /// How far a reimport or an import is, in items.
    package struct Reimport: Codable, Hashable, Sendable {
        package var done: Int
        package var total: Int
        /// Whether items are still being found, so that the total grows.
        package var isCounting: Bool

        package init(done: Int, total: Int, isCounting: Bool) {
            self.done = done
            self.total = total
            self.isCounting = isCounting
        }
    }

    package var name: String
    package var source: String
    package var mountpoint: String
    package var connection: Connection
    /// Why it is not online, in words.
    package var reason: String?
    package var items: Items
    package var bytes: Bytes
    package var pending: Pending
    package var failed: Int
    package var transfers: [Transfer]
    /// Whether the kernel reads materialized files by itself.
    package var passthrough: Bool
    /// What was noticed that the user should know.
    package var warnings: [String]
    /// Null when none is under way.
    package var reimport: Reimport?

    package init(
        name: String, source: String, mountpoint: String, connection: Connection, reason: String?, items: Items,
        bytes: Bytes, pending: Pending, failed: Int, transfers: [Transfer], passthrough: Bool, warnings: [String],
        reimport: Reimport? = nil
    ) {
        self.reimport = reimport
        self.name = name
        self.source = source
        self.mountpoint = mountpoint
        self.connection = connection
        self.reason = reason
        self.items = items
        self.bytes = bytes
        self.pending = pending
        self.failed = failed
        self.transfers = transfers
        self.passthrough = passthrough
        self.warnings = warnings
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(source, forKey: .source)
        try container.encode(mountpoint, forKey: .mountpoint)
        try container.encode(connection, forKey: .connection)
        try container.encode(reason, forKey: .reason)
        try container.encode(items, forKey: .items)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(pending, forKey: .pending)
        try container.encode(failed, forKey: .failed)
        try container.encode(transfers, forKey: .transfers)
        try container.encode(passthrough, forKey: .passthrough)
        try container.encode(warnings, forKey: .warnings)
        try container.encode(reimport, forKey: .reimport)
    }
}

/// Why an item is as it is, a sentence a line.
package struct WhyReport: Codable, Hashable, Sendable {
    package var path: String
    package var lines: [String]

    package init(path: String, lines: [String]) {
        self.path = path
        self.lines = lines
    }
}

/// What downloading or evicting came to.
package struct TransferSummary: Codable, Hashable, Sendable {
    package var items: Int
    package var bytes: Int64
    /// What was not done, each with its reason.
    package var refusals: [Refusal]

    package init(items: Int = 0, bytes: Int64 = 0, refusals: [Refusal] = []) {
        self.items = items
        self.bytes = bytes
        self.refusals = refusals
    }
}

/// One path that was not done.
package struct Refusal: Codable, Hashable, Sendable {
    package var path: String
    /// For scripts: `unsyncedEdits`, `nonEvictable`, `EBUSY`, `EMLINK`, or a provider error's code.
    package var code: String
    /// For people.
    package var reason: String

    package init(path: String, code: String, reason: String) {
        self.path = path
        self.code = code
        self.reason = reason
    }
}
