import FileProvider
import Replica

/// Receives what a volume has to tell the rest of the daemon. Every function is called on the thread that serves the
/// request and must return at once.
package protocol VolumeObserver: Sendable {
    /// A change was committed here. `effects` is what the kernel does not know of it.
    func volumeDidChange(_ effects: ReplicaEffects)
    func didOpenFile(_ number: InodeNumber)
    /// The last handle of an inode was closed, or the kernel has forgotten an inode that has no name.
    func didCloseInode(_ number: InodeNumber)
    /// The last handle for writing of a file was closed, and what was written is recorded. Others have it open for reading.
    func didEndWriting(_ number: InodeNumber)
    /// A process opened a directory whose listing is here.
    func didOpenDirectory(_ number: InodeNumber, caller: Requester?)
    /// A lookup missed in a listed directory.
    func didMissName(in directory: InodeNumber)
    /// The state of an item between this machine and the remote. Never waits for the remote.
    func syncState(of item: ItemRecord) throws -> SyncState
    var remoteQuota: RemoteQuota? { get }
}
