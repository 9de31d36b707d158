import Synchronization

/// A new file's bytes while the file is still being written.
///
/// They may be sent ahead, to where nobody sees them, and mean nothing until the ``ContentSource`` of the file is there:
/// what was sent has to be compared with that first, since nobody knows what was written over meanwhile.
package final class GrowingContent: Sendable {
    private struct State {
        var isGivenUp = false
        var upload: (any Sendable)?
    }

    private let state = Mutex(State())
    private let bytes: @Sendable (Int64, Int) throws -> [UInt8]

    /// - Parameter bytes: what is there at an offset, no more than so many bytes.
    package init(bytes: @escaping @Sendable (Int64, Int) throws -> [UInt8]) {
        self.bytes = bytes
    }

    /// What is there from an offset on, by now. Blocks for as long as the disk does.
    ///
    /// - Returns: so many bytes, or fewer when no more have been written.
    package func read(at offset: Int64, count: Int) throws -> [UInt8] { try bytes(offset, count) }

    /// Nobody wants it to be sent ahead any more.
    package func giveUp() { state.withLock { $0.isGivenUp = true } }

    package var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// What the provider has made of it: its own to know.
    package var upload: (any Sendable)? {
        get { state.withLock { $0.upload } }
        set { state.withLock { $0.upload = newValue } }
    }
}

/// A provider that can take a new file's bytes while the file is being written.
package protocol EarlyContentReceiver: Sendable {
    /// Sends ahead what is written, and ends when the call with the whole content has taken that over
    /// (``ContentSource/growing``), when that call does not come, or when it cannot be done. Nothing is seen of it on the
    /// remote before.
    func receive(_ content: GrowingContent, in parent: ItemIdentifier) async
}
