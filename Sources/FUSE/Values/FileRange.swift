/// A place in an open file: one end of `copyRange`.
package struct FileRange: Hashable, Sendable {
    package var node: NodeID
    package var handle: FileHandle
    package var offset: Int64
}
