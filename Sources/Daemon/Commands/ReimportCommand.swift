import Control
import FileProvider
import Replica
import Sync

struct ReimportCommand: Sendable {
    let host: DomainHost
    let progress: @Sendable (ControlEvent) -> Void

    private static let mostRefusals = 100

    /// - Throws: `failed` for an unknown item, and during another reimport of it.
    func perform(_ path: String, waits: Bool) async throws -> ReimportReport {
        let inode = try await PathResolver(host: host).inode(at: path)
        do {
            try await host.engine.reimport(below: inode.number)
        } catch let error as FileProviderError {
            let isUnderWay = try host.replica.database.reimports.isToBeOffered(inode.number)
            let reason = isUnderWay ? "noSuchItem: it is being reimported already" : error.message
            throw ControlError(.failed, reason, path: path)
        }
        guard waits else { return ReimportReport(path: path, isFinished: false, refusals: []) }
        try await host.engine.waitForReimport { [progress] now in
            progress(ControlEvent(path: path, items: now.done, bytes: 0))
        }
        let resolver = PathResolver(host: host)
        let refusals = try host.replica.database.reimports.failures(limit: Self.mostRefusals).map { number, failure in
            Refusal(
                path: resolver.path(of: number) ?? path, code: failure?.code ?? "", reason: failure?.message ?? "")
        }
        return ReimportReport(path: path, isFinished: true, refusals: refusals)
    }
}
