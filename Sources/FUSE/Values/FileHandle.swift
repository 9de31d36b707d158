/// The file system's own number for an open file or directory, given with the answer to `open`.
package struct FileHandle: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}
