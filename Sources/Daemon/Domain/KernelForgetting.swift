import Mount
import Replica
import Synchronization

/// Passes on to the mount what the kernel must forget, for as long as there is a mount.
final class KernelForgetting: KernelCache {
    private let mount = Mutex<MountedVolume?>(nil)

    func attach(_ mounted: MountedVolume?) {
        mount.withLock { $0 = mounted }
    }

    func forget(_ invalidations: [KernelInvalidation]) {
        guard let mount = mount.withLock({ $0 }) else { return }
        for invalidation in invalidations {
            switch invalidation {
            case .entry(let parent, let name): mount.forgetEntry(named: name, in: parent.node)
            case .deletion(let parent, let child, let name):
                mount.forgetDeleted(child.node, named: name, in: parent.node)
            case .attributes(let number): mount.forgetAttributes(of: number.node)
            case .contents(let number): mount.forgetContents(of: number.node)
            }
        }
    }
}

extension InodeNumber {
    /// The same number as the kernel has it.
    var node: UInt64 { UInt64(bitPattern: rawValue) }
}
