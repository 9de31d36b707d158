import Replica
import ReplicaTestSupport
import Volume

/// A volume over a replica in a folder of its own.
struct VolumeFixture {
    let replicaFixture: ReplicaFixture
    let replica: Replica
    let closed = ClosedInodes()
    let volume: Volume

    init() throws {
        (replicaFixture, replica) = try ReplicaFixture.opened()
        volume = try .make(replica, observer: closed)
    }
}

/// A suite whose tests have a volume of their own each.
protocol VolumeSuite {
    var own: VolumeFixture { get }
}

extension VolumeSuite {
    var fixture: ReplicaFixture { own.replicaFixture }
    var replica: Replica { own.replica }
    var volume: Volume { own.volume }
    var closed: ClosedInodes { own.closed }
    /// The owner of the items.
    var caller: Requester { Requester(processIdentifier: 1, userIdentifier: 7, groupIdentifier: 8) }
}
