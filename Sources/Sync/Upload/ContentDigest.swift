import Crypto
import FileProvider

/// SHA-256 of what a file held when it was sent: the remote's file can be compared with it after the file was written again here,
/// or removed.
enum ContentDigest {
    /// Larger content has none: reading it once more would delay its upload.
    static let mostBytes: Int64 = 16 << 20

    /// - Returns: nil for large content, and for a file that has become shorter. That of a file that is written meanwhile is of no
    ///   use; the upload fails as well.
    static func of(_ content: ContentSource) async -> [UInt8]? {
        guard content.size <= mostBytes else { return nil }
        return try? await BlockingWork.run {
            var hash = SHA256()
            try content.readQuietly(0..<content.size) { hash.update(data: $0) }
            return Array(hash.finalize())
        }
    }
}
