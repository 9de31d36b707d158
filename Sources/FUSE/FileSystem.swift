import SystemPackage

/// What answers the kernel: one function for each of its requests.
///
/// Every function is called on one of the session's threads, several at a time, and must not wait for anything slow,
/// nor for a notification to be sent, nor touch its own mount: what cannot be answered at once is parked (``Parked``)
/// and the function returns. Each has a default that answers ENOSYS, which the kernel takes as "never ask this again"
/// where it can do without.
package protocol FileSystem: AnyObject, Sendable {
    /// Finds a name. To be remembered as missing it is answered with ``Entry/absent(for:)``, else with ENOENT.
    func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply)
    /// The kernel has dropped so many of the lookups it was given. Not answered.
    func forget(node: NodeID, lookups: UInt64)
    func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply)
    /// Changes attributes. Set-ID bits are the file system's to clear when the owner or the size changes and the caller
    /// is not root.
    func setAttributes(
        _ request: Request, node: NodeID, changes: AttributeChanges, handle: FileHandle?,
        reply: consuming AttributesReply)
    func readLink(_ request: Request, node: NodeID, reply: consuming LinkTargetReply)

    func makeNode(
        _ request: Request, parent: NodeID, name: FileName, mode: UInt32, device: UInt32, reply: consuming EntryReply)
    func makeDirectory(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, reply: consuming EntryReply)
    func makeSymbolicLink(
        _ request: Request, parent: NodeID, name: FileName, target: [UInt8], reply: consuming EntryReply)
    func link(
        _ request: Request, node: NodeID, newParent: NodeID, newName: FileName, reply: consuming EntryReply)
    func unlink(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply)
    func removeDirectory(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply)
    func rename(
        _ request: Request, parent: NodeID, name: FileName, newParent: NodeID, newName: FileName,
        options: RenameOptions, reply: consuming EmptyReply)

    /// Opens a file. `O_CREAT` and `O_EXCL` have been dealt with; `O_TRUNC` is the file system's to do.
    func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply)
    /// Makes and opens a file.
    func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply)
    /// Makes and opens a file that has no name until ``link(_:node:newParent:newName:reply:)`` gives it one, and that is
    /// removed with its last use if it never gets one (`O_TMPFILE`). Its attributes have a link count of 0.
    func createUnnamed(
        _ request: Request, parent: NodeID, permissions: UInt32, flags: OpenFlags, reply: consuming CreateReply)
    func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply)
    /// Writes. `data` is good only until this returns. Set-ID bits are the file system's to clear when the caller is
    /// not root. `isFromCache`: the kernel writes back what was written earlier; caller and handle may be others.
    func write(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, data: borrowing WriteData,
        isFromCache: Bool, reply: consuming WriteReply)
    /// A descriptor was closed; there may be more. Its error is what `close` returns.
    func flush(_ request: Request, node: NodeID, handle: FileHandle, lockOwner: UInt64, reply: consuming EmptyReply)
    /// The last descriptor of an open was closed. Nobody sees the error.
    func release(
        _ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply)
    func synchronize(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply)
    func allocate(
        _ request: Request, node: NodeID, handle: FileHandle, options: AllocationOptions, offset: Int64, length: Int64,
        reply: consuming EmptyReply)
    func copyRange(
        _ request: Request, from source: FileRange, to destination: FileRange, count: Int, reply: consuming WriteReply)
    func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply)

    func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply)
    /// Lists names from an offset on: 0, or one that was given with a name.
    func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply)
    func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply)
    func synchronizeDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply)

    func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply)
    /// Only asked without `defaultPermissions`.
    func access(_ request: Request, node: NodeID, mask: Int32, reply: consuming EmptyReply)

    func setExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, value: [UInt8], options: ExtendedAttributeOptions,
        reply: consuming EmptyReply)
    func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply)
    func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply)
    func removeExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply)
}
