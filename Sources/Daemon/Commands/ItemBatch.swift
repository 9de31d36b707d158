import Control
import FileProvider

/// Runs a command on several items, one after the other.
struct ItemBatch {
    private var changed: [DomainHost] = []

    /// Runs `body` for each request and collects the failures. Returns when the mounts of the domains that `body` has
    /// passed to ``noteChange(in:)`` show the changes.
    ///
    /// - Parameter path: the path of a request, for its failure.
    /// - Throws: wrong usage; of the only request also a `ControlError` that says more than that its item failed, such as that no
    ///   domain is mounted there; `CancellationError`.
    static func run<Request>(
        _ requests: [Request], path: (Request) -> String, _ body: (Request, inout ItemBatch) async throws -> Void
    ) async throws -> [Refusal] {
        var batch = ItemBatch()
        var refusals: [Refusal] = []
        for request in requests {
            // The client may have been interrupted.
            try Task.checkCancellation()
            do {
                try await body(request, &batch)
            } catch let error as ControlError {
                let path = path(request)
                let isOfItem = error.code == .failed && error.path == path
                guard isOfItem || requests.count > 1, error.code != .usage else { throw error }
                // The error may be about another path, such as the destination of a move.
                let reason = error.path == path ? error.message : error.description
                refusals.append(Refusal(path: path, code: error.itemCode ?? error.code.rawValue, reason: reason))
            } catch let error as FileProviderError {
                try Task.checkCancellation()
                refusals.append(Refusal(path: path(request), code: error.code.rawValue, reason: error.message))
            }
        }
        // Names used after the command must be resolved again.
        for host in batch.changed { await host.tellKernel() }
        return refusals
    }

    mutating func noteChange(in host: DomainHost) {
        if !changed.contains(where: { $0 === host }) { changed.append(host) }
    }
}
