import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// What a server makes of `If-Match` and `If-None-Match` on a PUT.
enum ConditionSupport: Sendable, Hashable {
    case honoured
    /// Refused, or ignored.
    case none
}

extension S3Remote {
    /// Finds out, once: with an object of its own, for some servers ignore what they do not know.
    func conditions() async -> ConditionSupport {
        if let known = state.withLock({ $0.conditions }) { return known }
        let found: ConditionSupport
        do {
            found = try await triedConditions() ? .honoured : .none
        } catch let failure as S3Failure {
            client.logger.debug("conditional writes could not be tried: \(failure.error.message)")
            found = .none
        } catch {
            // Not to be reached now: found out the next time.
            return .none
        }
        state.withLock { $0.conditions = found }
        return found
    }

    private func triedConditions() async throws -> Bool {
        let key = rootPrefix + HiddenName.make()
        defer { remove(key) }
        guard try await tries(key, "If-None-Match", "*") else { return false }
        // The object is there now: neither may be done.
        if try await tries(key, "If-None-Match", "*") { return false }
        return try await !tries(key, "If-Match", "\"00000000000000000000000000000000\"")
    }

    /// - Returns: whether it was done; false when it was refused because of the condition.
    private func tries(_ key: String, _ name: String, _ value: String) async throws -> Bool {
        do {
            _ = try await client.send { [client] in
                client.request("PUT", key, fields: [name: value], body: .bytes([]))
            }
            return true
        } catch let failure as S3Failure where failure.isUnmetCondition {
            return false
        }
    }

    private func remove(_ key: String) {
        Task { [client] in try? await client.send { client.request("DELETE", key) } }
    }
}
