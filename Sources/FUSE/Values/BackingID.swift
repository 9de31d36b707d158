/// The kernel's number of a registered backing file.
package struct BackingID: RawRepresentable, Hashable, Sendable {
    package var rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }
}
