/// A descriptor that a worker has stored, under a name that need not be its alone.
package struct StoredDescriptor: Hashable, Sendable {
    package var name: String
    package var descriptor: Int32

    package static let most: Int32 = 1024
}
