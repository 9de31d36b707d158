/// The process that made a request. For requests of the kernel itself (writeback, readahead) the process is 0 or the one
/// that caused it. It is 0, too, for a process that the PID namespace of the mount does not show.
package struct Caller: Hashable, Sendable {
    package var processID: Int32
    package var userID: UInt32
    package var groupID: UInt32
    /// Only set for requests that create a node. Already applied unless the session has `keepsUmask`.
    package var umask: UInt32 = 0
}
