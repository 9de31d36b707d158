/// The kernel's number for a file that opened files can be passed through to.
package struct BackingID: RawRepresentable, Hashable, Sendable {
    package var rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }
}
