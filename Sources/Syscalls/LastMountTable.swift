import Synchronization

/// The mount table that was read last. Parsing it takes much longer than reading it, and a command with thousands of paths asks for
/// each of them where it leads. No other sign than the text tells of all changes: the kernel announces none when a directory above a
/// mount is renamed.
final class LastMountTable: Sendable {
    private let last = Mutex<(text: [UInt8], mounts: [MountTable.Mount])?>(nil)

    /// - Parameter parse: called for another text than that of the last call.
    func mounts(of text: [UInt8], parse: ([UInt8]) -> [MountTable.Mount]) -> [MountTable.Mount] {
        last.withLock { last -> [MountTable.Mount] in
            if let known = last, known.text == text { return known.mounts }
            let mounts = parse(text)
            last = (text, mounts)
            return mounts
        }
    }
}
