/// A queue with a thread of its own, which handles what is sent, one after the other.
final class MessageThread<Message: Sendable>: Sendable {
    private struct State: Sendable {
        var waiting: [Message] = []
        var isFinished = false
    }

    private let name: String
    private let handle: @Sendable (Message) -> Void
    private let state = Monitor(State())

    init(name: String, handle: @escaping @Sendable (Message) -> Void) {
        self.name = name
        self.handle = handle
    }

    /// Starts the thread; what was sent before is handled first. Without threads left in the system nothing is ever
    /// handled: then the connection could not be served either.
    func start() {
        let state = state
        let handle = handle
        let thread = try? SystemThread.start(name: name) {
            while true {
                let batch: [Message]? = state.wait { state in
                    if state.isFinished { return .some(nil) }
                    if state.waiting.isEmpty { return .none }
                    defer { state.waiting = [] }
                    return .some(state.waiting)
                }
                guard let batch else { return }
                for message in batch { handle(message) }
            }
        }
        thread?.detach()
    }

    /// Adds a message, or lets `merge` decide that the last one waiting stands for both. Never blocks.
    ///
    /// - Returns: false after ``finish()``, when nothing is taken any more.
    @discardableResult
    func send(_ message: Message, unless merge: (Message) -> Bool = { _ in false }) -> Bool {
        state.update { state in
            if state.isFinished { return false }
            if let last = state.waiting.last, merge(last) { return true }
            state.waiting.append(message)
            return true
        }
    }

    /// How many wait.
    var count: Int { state.read { $0.waiting.count } }

    /// Ends the thread after what it is handling now.
    ///
    /// - Returns: the messages that will not be handled; those of a batch that was begun are.
    @discardableResult
    func finish() -> [Message] {
        state.update { state in
            state.isFinished = true
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
