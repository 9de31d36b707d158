import FUSE
import SystemPackage

/// What would change something. The kernel believes the mount to be writable, because on one that is not it would refuse
/// the attributes that evict and download before anybody is asked.
extension VolumeFileSystem {
    func setAttributes(
        _ request: Request, node: NodeID, changes: AttributeChanges, handle: FileHandle?,
        reply: consuming AttributesReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func makeNode(
        _ request: Request, parent: NodeID, name: FileName, mode: UInt32, device: UInt32, reply: consuming EntryReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func makeDirectory(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, reply: consuming EntryReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func makeSymbolicLink(
        _ request: Request, parent: NodeID, name: FileName, target: [UInt8], reply: consuming EntryReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func link(
        _ request: Request, node: NodeID, newParent: NodeID, newName: FileName, reply: consuming EntryReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func unlink(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        reply.fail(.readOnlyFileSystem)
    }

    func removeDirectory(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        reply.fail(.readOnlyFileSystem)
    }

    func rename(
        _ request: Request, parent: NodeID, name: FileName, newParent: NodeID, newName: FileName,
        options: RenameOptions, reply: consuming EmptyReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        reply.fail(.readOnlyFileSystem)
    }

    func removeExtendedAttribute(_ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply) {
        reply.fail(.readOnlyFileSystem)
    }
}
