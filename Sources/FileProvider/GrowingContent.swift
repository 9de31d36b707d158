import Synchronization

/// The content of a new file that is still being written.
///
/// It may be uploaded early to a hidden place. When the file's ``ContentSource`` arrives, the uploaded bytes must be
/// compared with it, because they may have been overwritten since.
package final class GrowingContent: Sendable {
    private struct State {
        var isGivenUp = false
        var upload: (any Sendable)?
    }

    private let state = Mutex(State())
    /// Notified when the upload is cancelled, and by the provider after changes of its own.
    package let changes = ChangeSignal()
    private let bytes: @Sendable (Int64, Int) throws -> [UInt8]

    /// - Parameter bytes: returns the bytes at an offset, at most a number of them.
    package init(bytes: @escaping @Sendable (Int64, Int) throws -> [UInt8]) {
        self.bytes = bytes
    }

    /// The bytes that are written so far from an offset. Blocks on the disk.
    ///
    /// - Returns: `count` bytes, or fewer if no more have been written.
    package func read(at offset: Int64, count: Int) throws -> [UInt8] { try bytes(offset, count) }

    /// Cancels the early upload.
    package func giveUp() {
        state.withLock { $0.isGivenUp = true }
        changes.notify()
    }

    package var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// The provider's state of the early upload.
    package var upload: (any Sendable)? {
        get { state.withLock { $0.upload } }
        set { state.withLock { $0.upload = newValue } }
    }
}

/// A provider that can upload a new file while it is being written.
package protocol EarlyContentReceiver: Sendable {
    /// Uploads written bytes early. Returns when the call with the complete content has taken them over
    /// (``ContentSource/growing``), when that call does not come, or after an error. Nothing becomes visible on the
    /// remote before.
    func receive(_ content: GrowingContent, in parent: ItemIdentifier) async
}
