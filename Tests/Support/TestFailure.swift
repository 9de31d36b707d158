/// What keeps a test from running, in words.
package struct TestFailure: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) { self.description = description }
}
