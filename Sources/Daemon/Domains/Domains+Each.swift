import Control

extension Domains {
    /// Runs `body` for the referenced domain, or for all mounted ones, one after the other. The failure of one of several does not
    /// keep the others from their turn. Of all, one that is unmounted meanwhile is left out.
    ///
    /// - Throws: the failure of the only domain; of several, after all had their turn, `failed` with the name and the reason of each
    ///   that failed; what `body` throws after the task was cancelled, at once.
    nonisolated func each(_ reference: DomainReference?, _ body: (DomainHost) async throws -> Void) async throws {
        let hosts = try await hosts(reference)
        var failures: [String] = []
        for host in hosts {
            do {
                try await body(host)
            } catch {
                if reference == nil, host.isEnding, !Task.isCancelled {
                    // What the caller asks next finds it unmounted.
                    await stop(host)
                    continue
                }
                guard hosts.count > 1, !Task.isCancelled else { throw error }
                failures.append("\(host.name): \(reason(of: error))")
            }
        }
        if !failures.isEmpty { throw ControlError(.failed, failures.joined(separator: "; ")) }
    }

    /// An error in words for the user, as a part of a message.
    nonisolated func reason(of error: any Error) -> String {
        ControlError(failure: error, in: store.stateDirectory)?.message ?? "\(error)"
    }
}
