import SystemPackage

/// An open file that is closed with its last user, so that no thread uses a number that another file has got meanwhile.
public final class OwnedDescriptor: Sendable {
    /// Open as long as this object lives; ``use(_:)`` makes sure of that.
    public let descriptor: FileDescriptor

    /// - Parameter descriptor: from now on this object's to close.
    public init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit { try? descriptor.close() }

    /// Calls `body` with the descriptor, which is open until it returns.
    public func use<Value, Failure: Error>(
        _ body: (FileDescriptor) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        defer { withExtendedLifetime(self) {} }
        return try body(descriptor)
    }
}
