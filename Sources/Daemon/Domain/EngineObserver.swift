import FileProvider
import Replica
import Sync
import Volume

/// Passes the events of a volume on to the domain's engine.
struct EngineObserver: VolumeObserver {
    let engine: SyncEngine
    let policy: MaterializationPolicy

    func volumeDidChange(_ effects: ReplicaEffects) {
        engine.localChange(effects)
    }

    func didOpenFile(_ number: InodeNumber) { engine.inodeWasOpened(number) }

    func didCloseInode(_ number: InodeNumber) { engine.inodeWasClosed(number) }

    func didEndWriting(_ number: InodeNumber) { engine.writingHasEnded(number) }

    func didOpenDirectory(_ number: InodeNumber, caller: Requester?) {
        // The policy reads /proc, which must not happen on a thread that serves the kernel.
        Task {
            // Nothing is prefetched for a process that may not materialize.
            guard policy.refusal(of: caller?.processIdentifier) == nil else { return }
            engine.directoryWasOpened(number)
        }
    }

    func didMissName(in directory: InodeNumber) { engine.nameWasMissed(in: directory) }

    func syncState(of item: ItemRecord) throws -> SyncState { try engine.syncState(of: item) }

    var remoteQuota: RemoteQuota? { engine.quota.present }
}
