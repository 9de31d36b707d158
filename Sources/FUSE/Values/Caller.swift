/// The process that made a request. For requests of the kernel itself (writeback, readahead) the process is 0 or the one
/// that caused it.
package struct Caller: Hashable, Sendable {
    package var processID: Int32
    package var userID: UInt32
    package var groupID: UInt32
    /// Only set for requests that create a node. Already applied unless the session has `keepsUmask`.
    package var umask: UInt32 = 0
}
