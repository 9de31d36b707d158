import FUSE
import Replica

/// Sends the invalidations that follow from a commit to the kernel.
struct KernelInvalidator: KernelCache {
    let notifications: Notifications

    func forget(_ invalidations: [KernelInvalidation]) {
        for invalidation in invalidations {
            switch invalidation {
            case .entry(let parent, let name):
                notifications.expireEntry(parent: NodeID(parent), name: FileName(name))
            case .deletion(let parent, let child, let name):
                notifications.deleteEntry(parent: NodeID(parent), child: NodeID(child), name: FileName(name))
            case .attributes(let number): notifications.invalidateAttributes(NodeID(number))
            case .contents(let number): notifications.invalidateContents(NodeID(number))
            }
        }
    }
}

extension NodeID {
    fileprivate init(_ number: InodeNumber) {
        self.init(UInt64(bitPattern: number.rawValue))
    }
}
