/// The metadata of a request.
package struct Request: Hashable, Sendable {
    package let caller: Caller
    /// A number that is unique in this session, for logs and tables; not the kernel's.
    package let unique: UInt64
}
