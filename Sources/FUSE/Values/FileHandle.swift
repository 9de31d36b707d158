/// The file system's number for an open file or directory, returned in the reply to OPEN.
package struct FileHandle: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}
