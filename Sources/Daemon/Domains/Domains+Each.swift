import Control
import FileProvider

extension Domains {
    /// What `body` says of the referenced domain, or of all mounted ones, one after the other.
    nonisolated func map<Value>(
        _ reference: DomainReference?, _ body: (DomainHost) async throws -> Value
    ) async throws -> [Value] {
        var values: [Value] = []
        for host in try await hosts(reference) {
            do {
                values.append(try await body(host))
            } catch let error as FileProviderError where reference == nil && error.code == .domainDisabled {
                // It was unmounted meanwhile.
            }
        }
        return values
    }

    /// Runs `body` for the referenced domain, or for all mounted ones, one after the other. The failure of one of several does not
    /// keep the others from their turn.
    ///
    /// - Throws: the failure of the only domain; of several, after all had their turn, `failed` with the name and the reason of each
    ///   that failed; what `body` throws after the task was cancelled, at once.
    nonisolated func each(_ reference: DomainReference?, _ body: (DomainHost) async throws -> Void) async throws {
        let hosts = try await hosts(reference)
        var failures: [String] = []
        for host in hosts {
            do {
                try await body(host)
            } catch let error as FileProviderError where reference == nil && error.code == .domainDisabled {
                // It was unmounted meanwhile.
            } catch {
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
