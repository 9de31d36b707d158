import Control
import FileProvider
import Replica
import Sync
import Synchronization

struct ReimportCommand: Sendable {
    let host: DomainHost
    let progress: @Sendable (ControlEvent) -> Void

    private static let mostRefusals = 100

    /// - Parameter waits: also for the end of a reimport of the item that is under way already.
    /// - Throws: `failed` for an unknown item, during another reimport of it that is not to be waited for, and where a paused domain is
    ///   to be waited for.
    func perform(_ path: String, waits: Bool) async throws -> ReimportReport {
        let inode = try await PathResolver(host: host).inode(at: path)
        do {
            try await host.engine.reimport(below: inode.number)
        } catch let error as FileProviderError {
            let isUnderWay =
                try error.code == .noSuchItem && host.replica.database.reimports.isToBeOffered(inode.number)
            if !isUnderWay { throw ControlError(.failed, error.message, path: path) }
            if !waits {
                throw ControlError(.failed, "it is being reimported already; --wait waits for the end", path: path)
            }
        }
        guard waits else { return ReimportReport(path: path, isFinished: false, refusals: []) }
        do {
            try await wait(path)
        } catch let error as FileProviderError {
            // The domain is paused. The reimport has begun.
            throw ControlError(.failed, error.message, path: path)
        }
        let resolver = PathResolver(host: host)
        let refusals = try host.replica.database.reimports.failures(limit: Self.mostRefusals).map { number, failure in
            Refusal(
                path: resolver.path(of: number) ?? path, code: failure?.code ?? "", reason: failure?.message ?? "")
        }
        return ReimportReport(path: path, isFinished: true, refusals: refusals)
    }

    /// Waits until no reimport is under way. Reports each time when the remote has gone away, as `yonder events` does.
    private func wait(_ path: String) async throws {
        let wasAway = Mutex(false)
        try await host.engine.waitForReimport { [host, progress] now in
            let failure = host.engine.connection.failure
            let isNew = wasAway.withLock { wasAway in
                defer { wasAway = failure != nil }
                return !wasAway
            }
            if isNew, let failure {
                progress(ControlEvent(path: failure.message, items: now.done, bytes: 0, kind: "offline"))
            }
            progress(ControlEvent(path: path, items: now.done, bytes: 0))
        }
    }
}
