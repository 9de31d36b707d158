import Control
import FileProvider
import Replica
import Sync
import Synchronization
import Volume

/// Executes the commands that download and evict, with progress.
struct TransferCommands: Sendable {
    let domains: Domains
    let request: FileProviderRequest
    let progress: @Sendable (ControlEvent) -> Void

    /// Materializes items, directories recursively.
    ///
    /// - Throws: `CancellationError`.
    func download(_ paths: [String]) async throws -> TransferSummary {
        try await each(paths, lists: true) { host, inode, path, summary in
            if Self.isLocal(inode) { return summary.alreadyLocal = (summary.alreadyLocal ?? []) + [path] }
            let resolver = PathResolver(host: host)
            let before = (items: summary.items, bytes: summary.bytes)
            let done = Mutex((items: 0, bytes: Int64(0)))
            let ticker = Task {
                // A large file is reported only at its end; show the progress of its transfer.
                while true {
                    try await Task.sleep(for: .milliseconds(200))
                    let running = await host.engine.transfers.reduce(Int64(0)) { $0.saturatingAdd($1.done) }
                    let (items, bytes) = done.withLock { $0 }
                    progress(
                        ControlEvent(
                            path: path, items: before.items + items,
                            bytes: before.bytes.saturatingAdd(bytes).saturatingAdd(running)))
                }
            }
            defer { ticker.cancel() }
            let failures = try await host.engine.download(inode.number, request: request) { number, bytes in
                let now = done.withLock { done in
                    done.items += 1
                    done.bytes = done.bytes.saturatingAdd(bytes)
                    return done
                }
                progress(
                    ControlEvent(
                        path: resolver.path(of: number) ?? path, items: before.items + now.items,
                        bytes: before.bytes.saturatingAdd(now.bytes)))
            }
            let now = done.withLock { $0 }
            summary.items += now.items
            summary.bytes = summary.bytes.saturatingAdd(now.bytes)
            summary.refusals += failures.map { number, error in
                Refusal(
                    path: number == inode.number ? path : resolver.path(of: number) ?? path, code: error.code.rawValue,
                    reason: error.message)
            }
        }
    }

    /// Fetches one range of a file, clamped to the file.
    ///
    /// - Throws: `usage` for an invalid range; `CancellationError`.
    func download(_ path: String, offset: Int64, length: Int64) async throws -> TransferSummary {
        // A range may go on behind the end of the file.
        let end = offset.saturatingAdd(length)
        guard offset >= 0, length > 0 else {
            throw ControlError(.usage, "a range begins at 0 or later and has at least one byte", path: path)
        }
        return try await each([path], lists: true) { host, inode, path, summary in
            guard inode.kind == .file else { throw ControlError(.failed, "not a file", path: path) }
            guard offset < inode.size else {
                throw ControlError(.failed, "the file ends before byte \(offset)", path: path)
            }
            if Self.isLocal(inode) { return summary.alreadyLocal = [path] }
            try await host.engine.provide(
                inode.number, version: inode.contentVersion, range: offset..<min(end, inode.size), request: request)
            summary.items += 1
            summary.bytes += min(end, inode.size) - offset
        }
    }

    /// Whether a file is completely on this machine. The remote may not even have it yet.
    private static func isLocal(_ inode: InodeRecord) -> Bool {
        inode.kind == .file && inode.content == .materialized
    }

    /// Evicts items, directories recursively.
    ///
    /// - Throws: `CancellationError`.
    func evict(_ paths: [String], isStrict: Bool) async throws -> TransferSummary {
        var replicas: [Replica] = []
        let summary = try await each(paths, lists: false) { host, inode, path, summary in
            if !replicas.contains(where: { $0 === host.replica }) { replicas.append(host.replica) }
            let resolver = PathResolver(host: host)
            let before = (items: summary.items, bytes: summary.bytes)
            let report = try await host.engine.evict(inode.number, isStrict: isStrict) { report in
                progress(
                    ControlEvent(
                        path: path, items: before.items + report.evictedFiles,
                        bytes: before.bytes.saturatingAdd(report.freedBytes)))
            }
            summary.items += report.evictedFiles
            summary.bytes = summary.bytes.saturatingAdd(report.freedBytes)
            if !report.stillListed.isEmpty {
                summary.stillListed =
                    (summary.stillListed ?? [])
                    + report.stillListed.map { $0 == inode.number ? path : resolver.path(of: $0) ?? path }
            }
            for (number, refusal) in report.refusals {
                summary.refusals.append(
                    Refusal(
                        path: number == inode.number ? path : resolver.path(of: number) ?? path, code: refusal.code,
                        reason: await refusal.words(on: number, of: host)))
            }
        }
        // The files have their blocks until their evictions are on the disk: one sync for all of them.
        for replica in replicas { try? await BlockingWork.run { try replica.database.deleteWithdrawnFiles() } }
        return summary
    }

    /// Sets the content policy of items. Downloads and evictions follow in the background.
    ///
    /// - Throws: `usage` for an unknown policy.
    func setPolicy(_ name: String, of paths: [String]) async throws -> TransferSummary {
        guard let policy = ContentPolicy(name: name) else { throw ControlError(.usage, "no such policy", path: name) }
        return try await each(paths, lists: policy == .keepDownloaded) { host, inode, path, summary in
            do throws(VolumeError) {
                try host.volume.setPolicy(policy, of: inode.number)
            } catch {
                var reason = error.description
                if case .refused(let cause) = error,
                    let failure = ControlError(failure: cause, in: domains.store.stateDirectory)
                {
                    reason = failure.message
                }
                throw ControlError(.failed, "the policy cannot be kept: \(reason)", path: path)
            }
            summary.items += 1
        }
    }

    /// Runs `body` for each path and collects failures.
    private func each(
        _ paths: [String], lists: Bool,
        _ body: (DomainHost, InodeRecord, String, inout TransferSummary) async throws -> Void
    ) async throws -> TransferSummary {
        var summary = TransferSummary()
        let refusals = try await ItemBatch.run(paths, path: PathResolver.withoutSlash) { given, _ in
            let path = PathResolver.withoutSlash(given)
            let host = try await domains.mountedHost(of: path)
            let inode = try await PathResolver(host: host, lists: lists).inode(at: given)
            try await body(host, inode, path, &summary)
        }
        summary.refusals += refusals
        return summary
    }
}
