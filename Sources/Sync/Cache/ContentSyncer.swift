import FileProvider
import Replica

/// Puts content on the disk some minutes after it was downloaded or sent, so that a power cut does not take it. Nothing runs while
/// neither happens.
struct ContentSyncer: Sendable {
    private let sync: @Sendable () throws -> Bool
    private let signal = WakeSignal()

    /// One sync of the file system is enough for all that is downloaded or sent meanwhile.
    static let usualPause = Duration.seconds(600)

    init(replica: Replica) {
        self.init { try replica.syncContents() }
    }

    /// - Parameter sync: as ``Replica/syncContents()``.
    init(sync: @escaping @Sendable () throws -> Bool) { self.sync = sync }

    /// Content was recorded or acknowledged, or can be synced again. Returns at once; from any thread.
    func wake() { signal.wake() }

    func start(pause: Duration = Self.usualPause) {
        signal.run { [sync, signal] in
            try? await Task.sleep(for: pause)
            guard !Task.isCancelled else { return .zero }
            // After a failure the next download or upload leads to another sync.
            let isDone = try? await BlockingWork.run(sync)
            if isDone == false { signal.wake() }
            return .zero
        }
    }

    /// Returns when no sync runs any more.
    func stop() async {
        signal.stop()
        await signal.ended()
    }
}
