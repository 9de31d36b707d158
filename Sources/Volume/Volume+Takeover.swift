import Logging
import Replica
import SystemPackage

/// Taking a mount over from a process that was killed.
extension Volume {
    /// Completes the open files of an inherited table from the rows of the replica. Called before the first request.
    ///
    /// The row of an inode that is open and used never changes its version: the item gets another inode for the version
    /// of the remote (`Ingestion.showNewest(of:)`), and the version of an upload is that of the content that is here. An
    /// open inode that is not used follows its row. The descriptors of content files are opened when they are needed.
    ///
    /// - Returns: the nodes of handles for writing that were closed and whose changes are not recorded yet, once for each
    ///   handle: ``closeWritten(_:registry:)`` has to follow.
    /// - Throws: ESTALE if an open inode has no row; EIO if the replica cannot be read. The mount has then to be aborted.
    package func restoreOpenFiles() throws(VolumeError) -> [UInt64] {
        let (files, closing) = files.restored
        for file in files {
            try file.withState { (state: inout OpenFile.State) throws(VolumeError) in
                // An open without an answer is decided when the kernel sends it again.
                guard state.isDecided else { return }
                guard let inode = try known({ try replica.database.inode(file.number) }) else {
                    logger.error("inode \(file.number) is open and has no row")
                    throw .refused(.staleNFSFileHandle)
                }
                state.version = inode.contentVersion
                state.size = inode.size
                state.isComplete = state.isComplete || (file.isUsed && inode.content == .materialized)
                state.isWritten = state.isWritten || inode.contentStamp != nil
                state.knownSizes = file.isUsed || state.isWritten ? nil : inode.size...inode.size
                state.dropsPages = !file.isUsed
            }
        }
        return closing.map { UInt64(bitPattern: $0.rawValue) }
    }
}
