import SystemPackage

/// Where a provider writes the content that was asked for.
///
/// Both calls put the bytes on the local disk before they return, and let readers who wait for them go on. They may
/// block for as long as the disk does. A call throws when the bytes are not wanted any more (nobody waits, or the item
/// has changed), when they lie outside the file, or when the disk is full: let the error through.
public protocol ContentSink: Sendable {
    /// Bytes of the content, at an offset of the file.
    func write(_ bytes: RawSpan, at offset: Int64) throws

    /// `count` bytes from a descriptor, at the same offset there as here: copied by the kernel where it can.
    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws
}

extension ContentSink {
    public func write(_ bytes: [UInt8], at offset: Int64) throws {
        try write(bytes.span.bytes, at: offset)
    }
}
