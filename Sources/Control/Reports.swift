package struct DomainSummary: Codable, Hashable, Sendable {
    package var name: String
    package var source: String
    @ExplicitNull package var mountpoint: String?
    package var isMounted: Bool
    /// Whether the next daemon mounts it. Nil from an older daemon.
    package var isToBeMounted: Bool?
    /// The number of changes of a domain that is not mounted, which nothing sends. Nil for a mounted one.
    package var unsent: Int?

    package init(
        name: String, source: String, mountpoint: String?, isMounted: Bool, isToBeMounted: Bool? = nil,
        unsent: Int? = nil
    ) {
        self.name = name
        self.source = source
        self.mountpoint = mountpoint
        self.isMounted = isMounted
        self.isToBeMounted = isToBeMounted
        self.unsent = unsent
    }
}

package struct UnmountReport: Codable, Hashable, Sendable {
    package var name: String
    /// The number of changes that are pending after the end of the mount; nil if they could not be counted.
    @ExplicitNull package var pending: Int?

    package init(name: String, pending: Int?) {
        self.name = name
        self.pending = pending
    }
}

package struct StatusReport: Codable, Hashable, Sendable {
    package var version = Version.current
    package var daemon: DaemonStatus
    package var domains: [DomainStatus] = []
    /// The running processes with the most fetched bytes.
    package var readers: [ReaderStatus]

    package init(daemon: DaemonStatus, readers: [ReaderStatus]) {
        self.daemon = daemon
        self.readers = readers
    }
}

/// The processes that serve the mounts.
package struct DaemonStatus: Codable, Hashable, Sendable {
    /// The process number of the daemon.
    package var worker: Int32
    /// The process number of the process that would restart the daemon; null for none.
    @ExplicitNull package var keeper: Int32?
    /// The start time of the daemon, RFC 3339.
    package var startedAt: String
    /// The number of restarts by the keeper.
    package var restarts: Int
    /// What of the configuration file has no effect, and what else is wrong with the daemon itself. Nil from a daemon of an earlier
    /// version.
    package var warnings: [String]?
    /// The domains that are to be mounted and find no room on the disk, and why. Nil from a daemon of an earlier version.
    package var withoutRoom: [String]?
    /// Where the daemon keeps its domains. Nil from a daemon of an earlier version.
    package var stateDirectory: String?

    package init(
        worker: Int32, keeper: Int32?, startedAt: String, restarts: Int, warnings: [String], withoutRoom: [String] = [],
        stateDirectory: String
    ) {
        self.withoutRoom = withoutRoom
        self.stateDirectory = stateDirectory
        self.worker = worker
        self.keeper = keeper
        self.startedAt = startedAt
        self.restarts = restarts
        self.warnings = warnings
    }
}

/// The fetch budget of a process.
package struct ReaderStatus: Codable, Hashable, Sendable {
    package var process: Int32
    package var name: String
    package var fetched: Int64
    /// The limit in bytes; null for none.
    @ExplicitNull package var limit: Int64?
    /// Whether the limit is reached.
    package var isRefused: Bool

    package init(process: Int32, name: String, fetched: Int64, limit: Int64?, isRefused: Bool) {
        self.process = process
        self.name = name
        self.fetched = fetched
        self.limit = limit
        self.isRefused = isRefused
    }
}

package struct DomainStatus: Codable, Hashable, Sendable {
    package enum Connection: String, Codable, Hashable, Sendable, CaseIterable {
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
        @ExplicitNull package var limit: Int64?

        package init(local: Int64, limit: Int64?) {
            self.local = local
            self.limit = limit
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

    /// The progress of a reimport or an import, in items.
    package struct Reimport: Codable, Hashable, Sendable {
        package var done: Int
        package var total: Int
        /// Whether items are still being counted, so that the total grows.
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
    /// The reason why the domain is not online.
    @ExplicitNull package var reason: String?
    package var items: Items
    package var bytes: Bytes
    package var pending: Pending
    package var failed: Int
    package var transfers: [Transfer]
    /// Whether the kernel reads materialized files directly (passthrough).
    package var passthrough: Bool
    package var warnings: [String]
    /// Null if no reimport is running.
    @ExplicitNull package var reimport: Reimport?
    /// The content bytes received since the domain was mounted. Nil from a daemon of an earlier version.
    package var received: Int64?
    /// The content bytes sent since then. Nil from a daemon of an earlier version.
    package var sent: Int64?

    package init(
        name: String, source: String, mountpoint: String, connection: Connection, reason: String?, items: Items,
        bytes: Bytes, pending: Pending, failed: Int, transfers: [Transfer], passthrough: Bool, warnings: [String],
        reimport: Reimport? = nil, received: Int64? = nil, sent: Int64? = nil
    ) {
        self.reimport = reimport
        self.received = received
        self.sent = sent
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
}

/// The explanation of an item's state, one sentence per line.
package struct WhyReport: Codable, Hashable, Sendable {
    package var path: String
    package var lines: [String]

    package init(path: String, lines: [String]) {
        self.path = path
        self.lines = lines
    }
}

/// The result of `yonder wait`.
package struct WaitReport: Codable, Hashable, Sendable {
    /// Whether the time limit passed while something was pending.
    package var hasTimedOut: Bool
    /// What cannot be downloaded now, if the command waited for downloads.
    package var refusals: [Refusal] = []
    /// The domains that are not mounted and have changes, which nothing sends, if the command named no domain.
    package var unsent: [DomainSummary] = []

    package init(hasTimedOut: Bool) {
        self.hasTimedOut = hasTimedOut
    }
}

/// The result of `yonder pause` and `yonder resume`.
package struct PauseReport: Codable, Hashable, Sendable {
    package var name: String
    package var isPaused: Bool

    package init(name: String, isPaused: Bool) {
        self.name = name
        self.isPaused = isPaused
    }
}

/// A domain whose pending changes `yonder retry` has made due, as it is after that. The fields are those of ``DomainStatus``.
package struct RetryReport: Codable, Hashable, Sendable {
    package var name: String
    package var connection: DomainStatus.Connection
    package var pending: DomainStatus.Pending
    package var failed: Int

    package init(_ status: DomainStatus) {
        name = status.name
        connection = status.connection
        pending = status.pending
        failed = status.failed
    }
}

/// The result of `yonder signal`.
package struct SignalReport: Codable, Hashable, Sendable {
    /// A warning for each domain that holds removals on the remote, if the command waited for the changes.
    package var heldRemovals: [String]

    package init(heldRemovals: [String]) {
        self.heldRemovals = heldRemovals
    }
}

/// The result of a download or an eviction.
package struct TransferSummary: Codable, Hashable, Sendable {
    package var items: Int
    package var bytes: Int64
    package var refusals: [Refusal]
    /// The files named in the command of which nothing was left to download; not counted in `items`. Nil for none.
    package var alreadyLocal: [String]?
    /// The directories whose listing stays after an eviction that succeeded, because they hold what exists on this machine only
    /// and is never uploaded. Nil for none.
    package var stillListed: [String]?

    package init(
        items: Int = 0, bytes: Int64 = 0, refusals: [Refusal] = [], alreadyLocal: [String]? = nil,
        stillListed: [String]? = nil
    ) {
        self.items = items
        self.bytes = bytes
        self.refusals = refusals
        self.alreadyLocal = alreadyLocal
        self.stillListed = stillListed
    }
}

package struct Refusal: Codable, Hashable, Sendable {
    package var path: String
    /// The reason for scripts: `unsyncedEdits`, `nonEvictable`, `EBUSY`, `EMLINK`, or the code of a provider's error.
    package var code: String
    package var reason: String

    package init(path: String, code: String, reason: String) {
        self.path = path
        self.code = code
        self.reason = reason
    }
}
