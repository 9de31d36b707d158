/// What kind of file a node is: the type bits of its mode.
package enum FileKind: UInt32, Hashable, Sendable {
    case fifo = 0o010000
    case characterDevice = 0o020000
    case directory = 0o040000
    case blockDevice = 0o060000
    case regular = 0o100000
    case symbolicLink = 0o120000
    case socket = 0o140000

    /// The kind in a full mode; nil when the bits name none (0 means a regular file to `mknod`).
    package init?(mode: UInt32) {
        self.init(rawValue: mode & 0o170000)
    }
}
