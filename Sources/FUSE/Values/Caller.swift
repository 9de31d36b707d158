/// The process that made a request. For requests that the kernel makes of itself (writing back, reading ahead) the
/// process is 0 or the one that happened to cause it.
package struct Caller: Hashable, Sendable {
    package var processID: Int32
    package var userID: UInt32
    package var groupID: UInt32
    /// Only set for requests that create something; applied already unless the session keeps the umask.
    package var umask: UInt32

    package init(processID: Int32, userID: UInt32, groupID: UInt32, umask: UInt32 = 0) {
        self.processID = processID
        self.userID = userID
        self.groupID = groupID
        self.umask = umask
    }
}
