import Control
import FileNames
import FileProvider
import Mount
import Replica
import Sync
import Syscalls
import SystemPackage

/// Reports mounted domains to the control socket.
struct StatusReporter: Sendable {
    let host: DomainHost

    func status() async throws -> DomainStatus {
        let counts = try host.replica.database.counts()
        let resolver = PathResolver(host: host)
        let pending = try host.replica.database.pendingCounts()
        var transfers: [DomainStatus.Transfer] = []
        for (direction, running) in [
            ("download", await host.engine.transfers), ("upload", await host.engine.uploadsUnderWay),
        ] {
            transfers += running.map { transfer in
                DomainStatus.Transfer(
                    path: resolver.path(of: transfer.number) ?? "inode \(transfer.number)", direction: direction,
                    done: transfer.done, total: transfer.total)
            }
        }
        let connection: DomainStatus.Connection =
            switch host.engine.connection.state {
            case .online: .online
            case .offline: .offline
            case .unauthenticated: .unauthenticated
            case .paused: .paused
            }
        let damage =
            host.replica.database.damage.map {
                [
                    "the database is damaged: \($0); 'yonder check \(ShellWord.escaped(host.name)) --repair' makes a new one from "
                        + "the remote"
                ]
            } ?? []
        return DomainStatus(
            name: host.name, source: host.source, mountpoint: host.mountpoint.fileNameText, connection: connection,
            reason: host.engine.connection.failure?.message,
            items: DomainStatus.Items(
                known: counts.knownItems, materializedFiles: counts.materializedFiles,
                materializedDirectories: counts.materializedDirectories),
            bytes: DomainStatus.Bytes(local: counts.localBytes, limit: host.options.cacheLimit),
            pending: DomainStatus.Pending(items: pending.items, bytes: pending.bytes),
            failed: try host.replica.database.failedChangeCount(except: host.engine.changesUnderWay),
            transfers: transfers.sorted { $0.path < $1.path }, passthrough: host.mounted.hasPassthrough,
            warnings: try host.engine.currentWarnings() + damage,
            reimport: try host.replica.database.reimports.progress().map {
                DomainStatus.Reimport(done: $0.done, total: $0.total, isCounting: $0.isCounting)
            },
            received: host.engine.traffic.received, sent: host.engine.traffic.sent)
    }

    func contentAges() throws -> ContentAges {
        let now = FileTimestamp.now
        let bytes = try host.replica.database.localBytes(
            byUse: ContentAges.bounds.reversed().map { now.advanced(by: .seconds(-$0)) })
        return ContentAges(name: host.name, bytes: bytes.reversed())
    }
}

extension ReaderStatus {
    init(_ reader: FetchBudget.Reader) {
        self.init(
            process: reader.process, name: reader.name, fetched: reader.fetched, limit: reader.limit,
            isRefused: reader.isRefused)
    }
}

extension DomainSummary {
    init(_ host: DomainHost) {
        self.init(
            name: host.name, source: host.source, mountpoint: host.mountpoint.fileNameText, isMounted: true,
            isToBeMounted: true)
    }
}
