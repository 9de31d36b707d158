/// How long changes are held back, because a program that saves often makes several changes in a row.
package struct UploadDelays: Hashable, Sendable {
    /// An item is sent when it was left alone for this long.
    var delay: Duration = .seconds(1)
    /// A file that is open for writing is sent when it was left alone for this long.
    var writtenDelay: Duration = .seconds(5)
    /// An item that changes all the time is sent this long after the first change that the remote does not have.
    var longestDelay: Duration = .seconds(30)
    /// Likewise a file that is open for writing, from a snapshot of its content.
    var longestWrittenDelay: Duration = .seconds(50)
    /// Likewise a file that is larger than ``smallFile``: a snapshot of it takes longer, and more of the disk.
    var longestLargeDelay: Duration = .seconds(600)

    /// Up to this size a snapshot costs little.
    static let smallFile: Int64 = 64 << 20

    package init() {}

    /// How long after its first unsent change a file of this size is sent although programs go on writing it.
    func longest(forSize size: Int64) -> Duration {
        size <= Self.smallFile ? longestWrittenDelay : longestLargeDelay
    }
}
