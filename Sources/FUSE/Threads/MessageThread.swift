/// A queue with a thread of its own that handles messages one at a time, in order.
final class MessageThread<Message: Sendable>: Sendable {
    private struct State: Sendable {
        var waiting: [Message] = []
        var isFinished = false
        var isPrepared = false
    }

    private let name: String
    private let state = Monitor(State())

    init(name: String) {
        self.name = name
    }

    /// Starts the thread. Messages that were sent before are handled first. When the system has no threads left, no
    /// message is ever handled; the connection could not be served then either.
    ///
    /// - Parameters:
    ///   - prepare: called on the thread before this returns.
    ///   - handle: called on the thread for each message; released after ``finish()``.
    func start(preparing prepare: @escaping @Sendable () -> Void = {}, _ handle: @escaping @Sendable (Message) -> Void)
    {
        let state = state
        let thread = try? SystemThread.start(name: name) {
            prepare()
            state.update { $0.isPrepared = true }
            while true {
                let batch: [Message]? = state.wait { state in
                    if state.waiting.isEmpty { return state.isFinished ? .some(nil) : .none }
                    defer { state.waiting = [] }
                    return .some(state.waiting)
                }
                guard let batch else { return }
                for message in batch { handle(message) }
            }
        }
        guard let thread else { return }
        thread.detach()
        state.wait { $0.isPrepared ? () : nil }
    }

    /// Queues a message, unless `merge` says that the last queued message covers it. Never blocks.
    ///
    /// - Returns: false after ``finish()``: the message was not queued.
    @discardableResult
    func send(_ message: Message, unless merge: (Message) -> Bool = { _ in false }) -> Bool {
        state.update { state in
            if state.isFinished { return false }
            if let last = state.waiting.last, merge(last) { return true }
            state.waiting.append(message)
            return true
        }
    }

    /// Ends the thread after all messages that were sent.
    ///
    /// - Returns: the messages that will not be handled, because the thread has not been started.
    func close() -> [Message] {
        state.update { state in
            state.isFinished = true
            guard !state.isPrepared else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    var count: Int { state.read { $0.waiting.count } }

    /// Ends the thread after the batch that it is handling.
    ///
    /// - Returns: the messages that will not be handled.
    @discardableResult
    func finish() -> [Message] {
        state.update { state in
            state.isFinished = true
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
