import Control
import FileProvider
import Replica
import Sync
import Syscalls
import SystemPackage

struct PendingCommands: Sendable {
    let domains: Domains
    /// Gets an `offline` with the reason in words each time when a remote that is waited for has gone away, and a `failed` once for each
    /// reason why changes that are waited for could not be sent.
    var progress: @Sendable (ControlEvent) -> Void = { _ in }

    /// Waits until the changes that are pending now have been uploaded, and optionally until all content is downloaded that is
    /// fetched without a reader.
    ///
    /// - Returns: what could not be downloaded; nil after the timeout.
    func wait(_ reference: DomainReference?, within time: Duration?, downloads: Bool) async throws -> [Refusal]? {
        let deadline = time.map { ContinuousClock.now + $0 }
        // All begin at once: each waits for what is pending now, and tells what it waits for.
        let waits = try await domains.hosts(reference).map { host in
            (host: host, task: Task { try await wait(for: host, reference, until: deadline, downloads: downloads) })
        }
        defer { for wait in waits { wait.task.cancel() } }
        var isDone = true
        var refusals: [Refusal] = []
        try await domains.each(reference) { host in
            // In a domain that was mounted since then nothing was pending.
            guard let task = waits.first(where: { $0.host === host })?.task else { return }
            let found = try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
            guard let found else { return isDone = false }
            refusals += found
        }
        return isDone ? refusals : nil
    }

    /// As ``wait(_:within:downloads:)``, in one domain.
    private func wait(
        for host: DomainHost, _ reference: DomainReference?, until deadline: ContinuousClock.Instant?, downloads: Bool
    ) async throws -> [Refusal]? {
        let below = try await inode(below: reference, in: host)
        let absence = Task { try await tellAbsence(of: host) }
        let failures = Task { try await tellFailures(of: host, below: below) }
        defer {
            absence.cancel()
            failures.cancel()
        }
        let left: () -> Duration? = { deadline.map { max(.zero, $0 - .now) } }
        let isSynced =
            if let below {
                try await host.engine.waitUntilSynced(below: below, within: left())
            } else {
                try await host.engine.waitUntilSynced(within: left())
            }
        // The remote's answers may have renamed items.
        if isSynced { await host.tellKernel() }
        guard isSynced, downloads else { return isSynced ? [] : nil }
        guard let missing = try await host.engine.waitUntilDownloaded(below: below, within: left()) else { return nil }
        let resolver = PathResolver(host: host)
        return missing.sorted { $0.key.rawValue < $1.key.rawValue }.map { number, failure in
            Refusal(
                path: resolver.path(of: number) ?? "inode \(number)", code: failure.code.rawValue,
                reason: failure.message)
        }
    }

    /// Tells why the remote is not asked, as far as it is waited for, until it is cancelled.
    private func tellAbsence(of host: DomainHost) async throws {
        var wasAway = false
        while true {
            // Where nothing is pending there is nothing to tell.
            try await Task.sleep(for: .milliseconds(200))
            let failure = host.engine.connection.failure
            if !wasAway, let failure {
                let reason = "\(host.name): waits for the remote: \(failure.message)"
                progress(ControlEvent(path: reason, items: 0, bytes: 0, kind: "offline"))
            }
            wasAway = failure != nil
        }
    }

    /// Tells of one change for each kind of error why it could not be sent, and when that is tried again, until it is cancelled.
    private func tellFailures(of host: DomainHost, below top: InodeNumber?) async throws {
        let resolver = PathResolver(host: host)
        var told: Set<String> = []
        while true {
            try await Task.sleep(for: .seconds(1))
            let sending = host.engine.changesUnderWay
            let failed = try host.replica.database.failedChanges(below: top, limit: Self.mostFailures)
            for change in failed where !sending.contains(change.mark) && !told.contains(change.code) {
                guard let next = change.nextTry, next > FileTimestamp.now,
                    let path = try PrecedingChange.shownPath(of: change.mark, resolver)
                else { continue }
                told.insert(change.code)
                let reason = "\(path): \(change.message); next try \(Timestamp.text(next))"
                progress(ControlEvent(path: reason, items: 0, bytes: 0, kind: "failed"))
            }
        }
    }

    private static let mostFailures = 1000

    /// Retries all changes of domains, or those of one item.
    func retry(_ reference: DomainReference?) async throws {
        try await domains.each(reference) { host in
            try await host.engine.retry(try await inode(below: reference, in: host))
        }
    }

    /// The selected item; nil for the whole domain. A path below the mount point selects that item alone.
    private func inode(below reference: DomainReference?, in host: DomainHost) async throws -> InodeNumber? {
        guard let reference, host.name != reference.text, host.place.fileNameText != reference.path else { return nil }
        return try await PathResolver(host: host).inode(at: reference.path).number
    }
}

enum EventReporter {
    /// Reports the events of domains until the stream and all their mounts have ended.
    static func follow(
        _ domains: AsyncStream<DomainEvents>, _ progress: @escaping @Sendable (ControlEvent) -> Void
    ) async {
        await withDiscardingTaskGroup { group in
            for await domain in domains {
                group.addTask { await report(domain, progress) }
            }
        }
    }

    private static func report(
        _ domain: DomainEvents, _ progress: @escaping @Sendable (ControlEvent) -> Void
    ) async {
        for await event in domain.events {
            let resolver = PathResolver(host: domain.host)
            let directory = event.directory.flatMap { resolver.path(of: $0) }
            let path =
                event.number.flatMap { resolver.path(of: $0) } ?? directory.map { "\($0)/\(event.name)" }
                ?? event.name
            progress(
                ControlEvent(
                    path: path, items: 1, bytes: event.bytes, kind: event.kind.rawValue,
                    time: Timestamp.text(event.time), process: event.process))
        }
    }
}
