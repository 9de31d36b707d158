/// Wakes a worker that sleeps until there may be something to do. Several calls before the worker looks are one.
///
/// It is made before the worker and before what wakes the worker, so that neither needs the other.
final class WakeSignal: Sendable {
    let wakes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (wakes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Returns at once; from any thread.
    func wake() { continuation.yield() }

    /// Ends the worker's loop.
    func finish() { continuation.finish() }
}
