import Crypto
import FileProvider
import Foundation
import HTTPTransport

extension HTTPRequest {
    /// The ETag of the object that this request writes; nil where it cannot be computed.
    var tagOfWritten: String? {
        guard method == "PUT" else { return nil }
        if fields["x-amz-copy-source"] != nil { return fields["x-amz-copy-source-if-match"].map(S3Object.quoted) }
        if let digest = fields["Content-MD5"].flatMap({ Data(base64Encoded: $0) }) {
            return S3Object.quoted(digest.hexadecimal)
        }
        guard case .bytes(let bytes)? = body else { return nil }
        return S3Object.quoted(Insecure.MD5.hash(data: bytes).hexadecimal)
    }
}
