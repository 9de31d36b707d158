import FileProvider
import FileProviderPaths
import Synchronization
import SystemPackage

/// The listing of one directory while it arrives. A task reads the response as fast as the server sends it, so that no
/// connection waits for the consumer; an ``EntrySpool`` holds the entries until then.
final class ListingStream: Sendable {
    private struct State {
        var spool: EntrySpool
        /// Whether the listed item is a directory; nil before the server has described it.
        var isDirectory: Bool?
        var leavesOut = false
        /// Whether the consumer has got entries.
        var isBegun = false
        var result: Result<Void, any Error>?
        /// The number of entries that the consumer waits for.
        var wanted = 0
        var task: Task<Void, Never>?

        /// Whether the consumer can continue.
        var isReady: Bool { result != nil || isDirectory == false || isDirectory == true && spool.count >= wanted }
    }

    struct Part {
        var entries: [RemoteEntry]
        var leavesOut: Bool
        var isLast: Bool
    }

    private let state: Mutex<State>
    /// Notified when the consumer can continue.
    private let changes = ChangeSignal()
    /// After this time a part has the entries that have arrived, even if they are few.
    private static let patience = Duration.milliseconds(100)

    /// - Parameter directory: the directory of the spool's file.
    init(in directory: FilePath) {
        state = Mutex(State(spool: EntrySpool(in: directory)))
    }

    // MARK: - Arriving

    /// Starts the task that reads the response.
    func start(_ body: @escaping @Sendable () async throws -> Void) {
        let task = Task {
            let result: Result<Void, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            change { $0.result = result }
        }
        state.withLock { $0.task = task }
    }

    func add(_ entry: RemoteEntry) throws {
        try change { try $0.spool.append(entry) }
    }

    /// Records whether the listed item is a directory.
    func noteOwn(isDirectory: Bool) { change { $0.isDirectory = $0.isDirectory ?? isDirectory } }

    /// Records that the directory has a member that is left out.
    func noteLeftOut() { state.withLock { $0.leavesOut = true } }

    /// Forgets all that has arrived, because the request is repeated.
    ///
    /// - Returns: false after the consumer has got a part of it.
    func discard() -> Bool {
        state.withLock { state in
            guard !state.isBegun else { return false }
            state.spool.close()
            (state.isDirectory, state.leavesOut) = (nil, false)
            return true
        }
    }

    private func change(_ body: (inout State) throws -> Void) rethrows {
        let isReady = try state.withLock { state in
            try body(&state)
            return state.isReady
        }
        if isReady { changes.notify() }
    }

    // MARK: - Taking

    /// Returns the next entries.
    ///
    /// - Parameters:
    ///   - limit: the largest number of entries; `Int.max` waits for all.
    ///   - what: the directory, for messages.
    /// - Throws: the errors of the request; `noSuchItem` for an item that is no directory; `malformedResponse` for a response
    ///   that does not describe it.
    func next(_ limit: Int, of what: String, on host: String) async throws -> Part {
        var isLate = false
        while true {
            try Task.checkCancellation()
            let seen = changes.count
            let (result, isDirectory, count) = state.withLock { state in
                state.wanted = limit
                return (state.result, state.isDirectory, state.spool.count)
            }
            try result?.get()
            switch isDirectory {
            case true?: if result != nil || count >= limit || isLate && count > 0 { return try await take(limit) }
            case false?: throw FileProviderError(.noSuchItem, "\(host) has no directory '\(what)'")
            // A response without the directory itself does not answer the request. It would look like an empty directory.
            case nil where result != nil:
                throw FileProviderError(.malformedResponse, "\(host) does not say what '\(what)' is")
            case nil: break
            }
            isLate = try await !changes.wait(after: seen, until: .now + Self.patience) && limit < .max
        }
    }

    private func take(_ limit: Int) async throws -> Part {
        try await BlockingWork.run { [self] in
            try state.withLock { state in
                state.isBegun = true
                let entries = try state.spool.take(limit)
                let isLast = if case .success = state.result { state.spool.count == 0 } else { false }
                return Part(entries: entries, leavesOut: state.leavesOut, isLast: isLast)
            }
        }
    }

    func cancel() {
        let task = state.withLock { state in
            state.spool.close()
            return state.task
        }
        task?.cancel()
        changes.notify()
    }

    deinit { state.withLock { $0.spool.close() } }
}
