import Crypto
import FileProvider
import Synchronization
import SystemPackage

/// The hash of an object's bytes, which tells whether two objects that the server gives other ETags are the same.
enum ObjectHash {
    /// Downloads the object.
    ///
    /// - Returns: nil when there is another object by now.
    static func of(_ object: S3Object, _ client: S3Client) async throws -> [UInt8]? {
        let sink = HashingSink()
        let (found, _) = try await client.read(object.key, nil, isConditional: false, into: sink)
        guard client.listsOtherTags || found.tag == object.tag else { return nil }
        return sink.hash
    }
}

/// Takes bytes in their order.
private final class HashingSink: ContentSink {
    private let state = Mutex((hash: SHA256(), count: Int64(0)))

    var hash: [UInt8] { state.withLock { Array($0.hash.finalize()) } }

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        try state.withLock { state in
            // The download may begin again.
            if offset == 0 { state = (SHA256(), 0) }
            guard offset == state.count else { throw Self.disorder }
            // The load is bounds-checked, and any bits are a byte.
            let copy = (0..<bytes.byteCount).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
            state.hash.update(data: copy)
            state.count += Int64(bytes.byteCount)
        }
    }

    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws { throw Self.disorder }

    private static let disorder = FileProviderError(.malformedResponse, "an object's bytes come in another order")
}
