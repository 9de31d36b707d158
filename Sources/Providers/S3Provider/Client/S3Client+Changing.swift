import Crypto
import FileProvider
import Foundation
import HTTPTransport

struct Deletion: Sendable {
    var key: String
    /// The ETag with which it is deleted, where the server checks that; nil for any.
    var tag: String?
}

extension S3Client {
    func copySource(_ key: String) -> String {
        "/\(location.bucket)/\(PercentEncoding.encode(key, keeping: "/"))"
    }

    /// Sends a request after whose status the server still works: an error may come after a good status.
    ///
    /// - Parameter size: of the object that it copies, in bytes; nil for a request about a large one.
    /// - Returns: the ETag in the response, where it has one.
    /// - Throws: ``S3Failure``; `malformedResponse` for a response that is no result.
    func sendForResult(copying size: Int64? = nil, _ make: () -> HTTPRequest) async throws -> String? {
        try await again { (tries: Int) async throws -> String? in
            let request = make()
            if tries > 0 { try await request.beforeRepetition?() }
            let answer = try await transport.longCopies.copying(size, to: request.url) { isLong in
                var request = request
                request.isLong = isLong
                return try await attempt(request)
            }
            let document = try? XMLReader.document(answer.body)
            guard answer.head.isSuccess, document?.name.local != "Error" else {
                let failure = failure(answer, of: request)
                // By the status of the response alone it was applied.
                if answer.head.isSuccess, failure.status >= 500 { noteUnknown(request) }
                throw failure
            }
            guard let document, document.name.local.hasSuffix("Result") else {
                noteUnknown(request)
                throw FileProviderError(.malformedResponse, "the server does not say what it has made")
            }
            return document.child("ETag").map { S3Object.quoted($0.trimmedText) }
        }
    }

    /// What is sent with a new object and is kept beside its content.
    private static let kept: Set = [
        "content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires",
        "x-amz-storage-class",
    ]

    /// The metadata of an object, in the fields in which it is sent with a new one.
    func metadata(of key: String) async throws -> HTTPFields {
        var metadata = HTTPFields()
        for field in try await head(key).fields {
            let name = field.name.lowercased()
            if name.hasPrefix("x-amz-meta-") || Self.kept.contains(name) { metadata[name] = field.value }
        }
        return metadata
    }

    /// The mark of the rename that made an object; empty where none did, and nil where there is no object.
    func renameMark(of key: String) async throws -> String? {
        try await ifExists { try await head(key).fields[ObjectMetadata.rename] ?? "" }
    }

    /// Deletes many objects with one request.
    ///
    /// - Parameters:
    ///   - spelling: how the server wants the ETags; nil where it does not check them.
    ///   - recheck: called before each repetition, where the server does not check them.
    /// - Returns: the keys of those that have another ETag; nil when the server does not know this request.
    func delete(
        _ deletions: [Deletion], _ spelling: ConditionSupport.Spelling?,
        recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> [String]? {
        let listed = deletions.map { deletion in
            let tag = spelling.flatMap { spelling in
                deletion.tag.map { "<ETag>\(spelling.value($0).escapedForXML)</ETag>" }
            }
            return "<Object><Key>\(deletion.key.escapedForXML)</Key>\(tag ?? "")</Object>"
        }
        let body = Array(
            "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\(listed.joined())</Delete>"
                .utf8)
        let digest = Data(Insecure.MD5.hash(data: body)).base64EncodedString()
        let answer: HTTPResponse
        do {
            answer = try await send {
                self.request(
                    "POST", nil, query: [("delete", "")],
                    fields: ["Content-MD5": digest, "Content-Type": "application/xml"], body: .bytes(body),
                    repetition: .harmless, changing: deletions.map(\.key), recheck: recheck)
            }
        } catch let failure as S3Failure where failure.isUnimplemented || failure.status == 405 {
            return nil
        }
        let document = try XMLReader.document(answer.body)
        guard document.name.local == "DeleteResult" else {
            guard document.name.local == "Error" else {
                throw FileProviderError(.malformedResponse, "the server does not say what it has deleted")
            }
            throw S3Failure(answer, bucket: location.bucket)
        }
        var left: [String] = []
        for refusal in document.children where refusal.name.local == "Error" {
            let code = refusal.child("Code")?.trimmedText ?? ""
            if code == "NoSuchKey" { continue }
            let key = refusal.child("Key")?.text ?? ""
            if spelling != nil, ["PreconditionFailed", "ConditionalRequestConflict"].contains(code) {
                left.append(key)
                continue
            }
            throw FileProviderError(
                Self.error(forRefusal: code), "the server does not delete '\(key)' (\(code))")
        }
        return left
    }

    /// The error for one key of a list. Errors that pass leave open what was done, as those of a whole request do.
    private static func error(forRefusal code: String) -> FileProviderError.Code {
        switch code {
        case "AccessDenied": .fileReadNoPermission
        case "InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted":
            .providerDomainTemporarilyUnavailable
        default: .cannotSynchronize
        }
    }
}
