import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// What of `If-Match` and `If-None-Match` a server honours; what it does not, it refuses or ignores.
struct ConditionSupport: Sendable, Hashable {
    var onWriting = false
    /// When one object is deleted.
    var onDeleting = false
    /// When many are deleted with one request, each on its own condition.
    var onDeletingMany = false

    static let none = ConditionSupport()

    /// What the user should know of it.
    var peculiarities: [String] {
        if !onWriting {
            return ["this server checks no conditions: what two write at the same moment may overwrite each other"]
        }
        if !onDeleting {
            return [
                "this server checks no conditions when it deletes: what somebody writes in the moment in which it is "
                    + "deleted here may be lost"
            ]
        }
        return []
    }
}

extension S3Remote {
    /// Finds out, once: with an object of its own, for some servers ignore what they do not know.
    func conditions() async -> ConditionSupport {
        if let known = state.withLock({ $0.conditions }) { return known }
        var found = ConditionSupport()
        do {
            try await tryConditions(&found)
        } catch let failure as S3Failure {
            client.logger.debug("not all conditions could be tried: \(failure.error.message)")
        } catch {
            // Not to be reached now: found out the next time.
            return .none
        }
        state.withLock { $0.conditions = found }
        return found
    }

    private func tryConditions(_ found: inout ConditionSupport) async throws {
        let key = rootPrefix + HiddenName.make()
        defer { remove(key) }
        // What no object has.
        let other = "\"00000000000000000000000000000000\""
        guard
            try await isMet({ [client] in client.request("PUT", key, fields: ["If-None-Match": "*"], body: .bytes([])) }
            )
        else { return }
        // The object is there now: neither may be done.
        for field: HTTPFields in [["If-None-Match": "*"], ["If-Match": other]] {
            if try await isMet({ [client] in client.request("PUT", key, fields: field, body: .bytes([])) }) { return }
        }
        found.onWriting = true
        if try await isMet({ [client] in client.request("DELETE", key, fields: ["If-Match": other]) }) { return }
        found.onDeleting = true
        guard state.withLock({ $0.deletesMany }) else { return }
        do {
            let left = try await deleteTogether([Deletion(key: key, tag: other)], onConditions: true)
            // A word in an answer is not enough where so much depends on it.
            if left == [key], try await object(key) != nil { found.onDeletingMany = true }
        } catch let error as FileProviderError where error.code.reaction != .latchDomain {
            client.logger.debug("conditions of many deletions could not be tried: \(error.message)")
        }
    }

    /// - Returns: whether a request was done; false when it was refused because of its condition.
    private func isMet(_ make: @Sendable () -> HTTPRequest) async throws -> Bool {
        do {
            _ = try await client.send(make)
            return true
        } catch let failure as S3Failure where failure.isUnmetCondition {
            return false
        }
    }

    private func remove(_ key: String) {
        Task { [client] in try? await client.send { client.request("DELETE", key) } }
    }

    /// The fields that say a condition about the object at a key.
    func fields(for condition: RemoteCondition, at key: String) -> [(String, String)] {
        switch condition {
        case .always, .empty: []
        case .absent: [("If-None-Match", "*")]
        case .unchanged(let content): [("If-Match", tag(of: content, at: key))]
        }
    }
}
