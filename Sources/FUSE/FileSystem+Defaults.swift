import SystemPackage

/// What a file system answers that does not care: it cannot do that.
extension FileSystem {
    package func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply) {
        reply.fail(.noFunction)
    }

    package func forget(node: NodeID, lookups: UInt64) {}

    package func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply)
    {
        reply.fail(.noFunction)
    }

    package func setAttributes(
        _ request: Request, node: NodeID, changes: AttributeChanges, handle: FileHandle?,
        reply: consuming AttributesReply
    ) {
        reply.fail(.noFunction)
    }

    package func readLink(_ request: Request, node: NodeID, reply: consuming LinkTargetReply) {
        reply.fail(.noFunction)
    }

    package func makeNode(
        _ request: Request, parent: NodeID, name: FileName, mode: UInt32, device: UInt32, reply: consuming EntryReply
    ) {
        reply.fail(.noFunction)
    }

    package func makeDirectory(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, reply: consuming EntryReply
    ) {
        reply.fail(.noFunction)
    }

    package func makeSymbolicLink(
        _ request: Request, parent: NodeID, name: FileName, target: [UInt8], reply: consuming EntryReply
    ) {
        reply.fail(.noFunction)
    }

    package func link(
        _ request: Request, node: NodeID, newParent: NodeID, newName: FileName, reply: consuming EntryReply
    ) {
        reply.fail(.noFunction)
    }

    package func unlink(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        reply.fail(.noFunction)
    }

    package func removeDirectory(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        reply.fail(.noFunction)
    }

    package func rename(
        _ request: Request, parent: NodeID, name: FileName, newParent: NodeID, newName: FileName,
        options: RenameOptions, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.noFunction)
    }

    package func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        reply.fail(.noFunction)
    }

    package func createUnnamed(
        _ request: Request, parent: NodeID, permissions: UInt32, flags: OpenFlags, reply: consuming CreateReply
    ) {
        reply.fail(.noFunction)
    }

    package func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply
    ) {
        reply.fail(.noFunction)
    }

    package func write(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, data: borrowing WriteData,
        isFromCache: Bool, reply: consuming WriteReply
    ) {
        reply.fail(.noFunction)
    }

    package func flush(
        _ request: Request, node: NodeID, handle: FileHandle, lockOwner: UInt64, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func release(
        _ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func synchronize(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func allocate(
        _ request: Request, node: NodeID, handle: FileHandle, options: AllocationOptions, offset: Int64, length: Int64,
        reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func copyRange(
        _ request: Request, from source: FileRange, to destination: FileRange, count: Int, reply: consuming WriteReply
    ) {
        reply.fail(.noFunction)
    }

    package func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply
    ) {
        reply.fail(.noFunction)
    }

    package func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.noFunction)
    }

    package func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply
    ) {
        reply.fail(.noFunction)
    }

    package func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.fail(.noFunction)
    }

    package func synchronizeDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply) {
        reply.fail(.noFunction)
    }

    package func access(_ request: Request, node: NodeID, mask: Int32, reply: consuming EmptyReply) {
        reply.fail(.noFunction)
    }

    package func setExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, value: [UInt8], options: ExtendedAttributeOptions,
        reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    package func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply
    ) {
        reply.fail(.noFunction)
    }

    package func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply) {
        reply.fail(.noFunction)
    }

    package func removeExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }
}
