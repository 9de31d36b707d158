import FileProvider
import Synchronization

/// The state of an in-memory remote: its tree, the call log and the fault script.
final class InMemoryState: Sendable {
    let options: InMemoryOptions
    let log = CallLog()
    let faults = FaultScript()
    private let state: Mutex<RemoteTree>

    init(options: InMemoryOptions, tree: RemoteTree?) {
        self.options = options
        var tree = tree ?? RemoteTree()
        tree.hasTrash = options.trash
        state = Mutex(tree)
    }

    var tree: RemoteTree { state.withLock { $0 } }

    func change<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        try state.withLock { try body(&$0) }
    }

    /// Logs a call and applies the scripted faults: delays, holds and failures here, all others in `body`.
    func perform<Value>(
        _ call: ProviderCall, _ body: ([FaultScript.Effect]) async throws -> Value
    ) async throws -> Value {
        try await log.record(call) {
            let effects = faults.effects(on: call.kind, of: call.identifier)
            for effect in effects {
                switch effect {
                case .delay(let duration): try await Task.sleep(for: duration)
                case .hold(let gate): try await gate.pass()
                default: break
                }
            }
            for case .fail(let error) in effects { throw error }
            try Task.checkCancellation()
            return try await body(effects)
        }
    }
}
