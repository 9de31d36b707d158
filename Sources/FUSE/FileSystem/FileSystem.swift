/// Answers the kernel: one function for each kind of request.
///
/// Every function is called on one of the session's threads, several at a time. It must not wait for the network or for
/// a notification to be sent, and must not touch its own mount. A request that cannot be answered at once is parked
/// (``ParkedReply``), and the function returns. An answer of ENOSYS tells the kernel to stop sending requests of that
/// kind where it can do without them.
package protocol FileSystem: AnyObject, Sendable {
    /// Looks a name up. The kernel caches an answer of ``Entry/absent(for:)`` as a negative dentry; it does not cache
    /// ENOENT.
    func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply)
    /// The kernel has dropped `lookups` of the lookups that it counted. This request has no answer.
    func forget(node: NodeID, lookups: UInt64)
    func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply)
    /// Changes attributes. The file system clears set-ID bits when the owner or the size changes and the caller is not
    /// root.
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

    /// Opens a file. The kernel has handled `O_CREAT` and `O_EXCL`; the file system handles `O_TRUNC`.
    func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply)
    func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply)
    /// Creates and opens a file without a name (`O_TMPFILE`). ``link(_:node:newParent:newName:reply:)`` may give it one;
    /// otherwise the file is removed with its last use. Its attributes have a link count of 0.
    func createUnnamed(
        _ request: Request, parent: NodeID, permissions: UInt32, flags: OpenFlags, reply: consuming CreateReply)
    func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply)
    /// Writes. `data` is valid only until this returns. The file system clears set-ID bits when the caller is not root.
    /// With `isFromCache` the kernel writes back dirty pages, and caller and handle may not be those of the writer.
    func write(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, data: borrowing WriteData,
        isFromCache: Bool, reply: consuming WriteReply)
    /// A descriptor was closed; others may share the open. `close` returns the error of this reply.
    func flush(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply)
    /// The last descriptor of an open was closed. The kernel ignores an error.
    func release(
        _ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply)
    func synchronize(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply)
    /// Allocates or deallocates space, by the mode of `fallocate(2)`.
    func allocate(
        _ request: Request, node: NodeID, handle: FileHandle, mode: Int32, offset: Int64, length: Int64,
        reply: consuming EmptyReply)
    func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply)

    func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply)
    /// Lists entries from an offset: 0, or one that was returned with an entry.
    func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply)
    func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply)
    func synchronizeDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply)

    func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply)
    func setExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, value: [UInt8], options: ExtendedAttributeOptions,
        reply: consuming EmptyReply)
    func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply)
    func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply)
    func removeExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply)
}
