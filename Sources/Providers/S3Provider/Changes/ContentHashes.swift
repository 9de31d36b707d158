import Crypto
import FileProvider
import Foundation

/// Hashes with which the server checks content that it receives.
struct ContentHashes: Sendable {
    var md5: [UInt8]
    /// Hexadecimal digits; ``Signature/unsignedPayload`` where TLS protects the content.
    var sha256: String

    var md5Base64: String { Data(md5).base64EncodedString() }

    /// Reads a range once. If it changes before it is read again, the server refuses it.
    static func of(_ contents: ContentSource, _ range: Range<Int64>, isSecure: Bool) async throws -> ContentHashes {
        try await BlockingWork.run {
            var md5 = Insecure.MD5()
            var sha256 = SHA256()
            // This reading is no progress of the upload.
            try contents.readQuietly(range) { bytes in
                md5.update(data: bytes)
                if !isSecure { sha256.update(data: bytes) }
            }
            return ContentHashes(
                md5: Array(md5.finalize()),
                sha256: isSecure ? Signature.unsignedPayload : sha256.finalize().hexadecimal)
        }
    }
}
