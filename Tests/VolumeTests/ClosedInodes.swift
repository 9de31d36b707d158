import FileProvider
import Logging
import Replica
import Synchronization
import Volume

/// Records the inodes whose last handle was closed, or whose last one for writing, and ignores all other events.
final class ClosedInodes: VolumeObserver {
    private let state = Mutex<[InodeNumber]>([])
    private let readers = Mutex<[InodeNumber]>([])

    var numbers: [InodeNumber] { state.withLock { $0 } }

    /// Those that were still open for reading then.
    var leftToReaders: [InodeNumber] { readers.withLock { $0 } }

    func didCloseInode(_ number: InodeNumber) {
        state.withLock { $0.append(number) }
    }

    func didEndWriting(_ number: InodeNumber) {
        readers.withLock { $0.append(number) }
    }

    func volumeDidChange(_ effects: ReplicaEffects) {}
    func didOpenFile(_ number: InodeNumber) {}
    func didOpenDirectory(_ number: InodeNumber, caller: Requester?) {}
    func didMissName(in directory: InodeNumber) {}
    /// Nothing is ever uploaded.
    func syncState(of item: ItemRecord) throws -> SyncState { item.changedFields.isEmpty ? .synced : .pending }
    var remoteQuota: RemoteQuota? { nil }
}

extension Volume {
    /// A volume whose items belong to a user, without a log.
    static func make(
        _ replica: Replica, user: UInt32 = 7, group: UInt32 = 8, observer: any VolumeObserver, files: OpenFiles? = nil
    ) throws -> Volume {
        Volume(
            replica: replica, files: try files ?? OpenFiles(), ownership: Ownership(user: user, group: group),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, observer: observer)
    }
}
