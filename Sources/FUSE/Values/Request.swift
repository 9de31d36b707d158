import Syscalls

package struct Request: Hashable, Sendable {
    package let caller: Caller
    /// A number that is unique in this session, for logs and tables; not the kernel's.
    package let unique: UInt64
    /// The kernel's number, unique for the life of the mount; nil where it could not be read, for want of descriptors.
    package let number: RequestNumber?
}
