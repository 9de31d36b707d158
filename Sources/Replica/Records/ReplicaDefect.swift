/// Something in the replica that should not be. The message says what.
package struct ReplicaDefect: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
