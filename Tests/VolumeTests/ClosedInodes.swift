import FileProvider
import Replica
import Synchronization
import Volume

/// Records the inodes whose last handle was closed, and ignores all other events.
final class ClosedInodes: VolumeObserver {
    private let state = Mutex<[InodeNumber]>([])

    var numbers: [InodeNumber] { state.withLock { $0 } }

    func didCloseInode(_ number: InodeNumber) {
        state.withLock { $0.append(number) }
    }

    func volumeDidChange(_ effects: ReplicaEffects) {}
    func didOpenFile(_ number: InodeNumber) {}
    func didOpenDirectory(_ number: InodeNumber, caller: Requester?) {}
    func didMissName(in directory: InodeNumber) {}
    var remoteQuota: RemoteQuota? { nil }
}
