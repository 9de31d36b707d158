/// What is known of a request beside its arguments.
package struct Request: Hashable, Sendable {
    package let caller: Caller
    /// A number of its own in this session, for logs and tables. Not the kernel's.
    package let unique: UInt64
}
