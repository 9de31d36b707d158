import FUSE
import SystemPackage

package struct InheritedMount: Sendable {
    let device: FileDescriptor
    let record: SessionRecord
}
