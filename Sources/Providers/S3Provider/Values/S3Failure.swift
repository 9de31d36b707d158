import FileProvider
import FileProviderPaths
import HTTPTransport

/// A response that is no success.
struct S3Failure: MissingItemError {
    var status: Int
    /// As S3 names it; empty when the server did not say.
    var code: String
    var message: String
    /// The region that the server names; nil for none, and for a text that cannot be one.
    var region: String?
    var date: Int64?
    /// Whether the key has characters that not every server takes.
    var mayBeAboutName = false
    private let bucket: String

    init(_ response: HTTPResponse, bucket: String) {
        let document = response.body.isEmpty ? nil : try? XMLReader.document(response.body)
        code = document?.child("Code")?.trimmedText ?? ""
        status = (response.head.isSuccess ? Self.status(ofLate: code) : nil) ?? response.status
        message = document?.child("Message")?.trimmedText ?? ""
        let named = response.fields["x-amz-bucket-region"] ?? document?.child("Region")?.trimmedText
        region = named.flatMap { S3Location.isRegion($0) ? $0 : nil }
        date = response.fields["Date"].flatMap { HTTPDate.seconds(from: $0) }
        self.bucket = bucket
    }

    /// The status that an error would have had that came after a good one: while S3 copies, or assembles parts, it has sent 200 already.
    private static func status(ofLate code: String) -> Int? {
        switch code {
        case "AccessDenied": 403
        case "NoSuchKey", "NoSuchUpload", "NoSuchBucket": 404
        case "ConditionalRequestConflict", "OperationAborted": 409
        case "PreconditionFailed": 412
        case "InternalError": 500
        case "NotImplemented": 501
        case "ServiceUnavailable", "SlowDown": 503
        default: nil
        }
    }

    /// There is no object of this key, and there is the bucket.
    var isMissing: Bool { status == 404 && code != "NoSuchBucket" }
    /// The clocks of client and server differ.
    var isAboutTime: Bool { code == "RequestTimeTooSkewed" }
    /// New credentials may help.
    var isAboutExpiry: Bool { ["ExpiredToken", "TokenRefreshRequired", "ExpiredTokenException"].contains(code) }
    /// The right region, where the server says it.
    var rightRegion: String? {
        guard
            ["AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"].contains(code)
                || status == 301 || status == 400 && code.isEmpty, let region
        else { return nil }
        return region
    }
    var isUnimplemented: Bool { status == 501 || code == "NotImplemented" }
    var isUnmetCondition: Bool { status == 412 || code == "PreconditionFailed" }
    /// Two conditional writes at once.
    var isRace: Bool { status == 409 && ["ConditionalRequestConflict", "OperationAborted"].contains(code) }

    /// Whether the server may refuse to give out this object, and give out others: the object is archived, encrypted with a key of its
    /// own, or a policy forbids to read it.
    var isAboutOneObject: Bool {
        [400, 403].contains(status) && [.fileReadNoPermission, .malformedResponse].contains(error.code)
    }

    /// Whether an error says that an object has changed.
    static func isAboutVersion(_ error: any Error) -> Bool {
        if let failure = error as? S3Failure { return failure.isUnmetCondition }
        return (error as? FileProviderError)?.code == .versionNoLongerAvailable
    }

    static func translating<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let failure as S3Failure {
            throw failure.error
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        } catch is OperationLedger.Busy {
            // Of a rename that is waited for before anything else.
            throw OperationLedger.nothingSent(
                FileProviderError(.providerDomainTemporarilyUnavailable, "a rename is being finished"))
        }
    }

    var serverMessage: String {
        let said = [code, message].filter { !$0.isEmpty }.joined(separator: ": ")
        return said.isEmpty ? "status \(status)" : String(said.prefix(300))
    }

    var error: FileProviderError {
        switch (status, code) {
        case (_, "NoSuchBucket"):
            return FileProviderError(.serverUnreachable, "there is no bucket '\(bucket)' on the server")
        case (_, "InvalidAccessKeyId"), (_, "SignatureDoesNotMatch"), (_, "InvalidToken"), (_, "TokenRefreshRequired"),
            (_, "ExpiredToken"), (_, "InvalidSecurity"), (_, "AccountProblem"), (_, "NotSignedUp"), (401, _):
            return FileProviderError(
                .notAuthenticated, "S3 refuses the credentials (\(Self.reason(code) ?? serverMessage))")
        case (_, "RequestTimeTooSkewed"):
            return FileProviderError(.notAuthenticated, "this machine's clock and the server's are too far apart")
        case (_, "AuthorizationHeaderMalformed"), (_, "IllegalLocationConstraintException"):
            let right = region.map { ": it is '\($0)'" } ?? ""
            return FileProviderError(.notAuthenticated, "'\(bucket)' is in another region\(right)")
        case (403, _):
            return FileProviderError(
                .fileReadNoPermission, "the credentials do not allow it in '\(bucket)' (\(serverMessage))")
        case (404, _): return FileProviderError(.noSuchItem, "no such object (\(serverMessage))")
        case (412, _): return FileProviderError(.versionNoLongerAvailable, "the object has changed")
        case (_, "QuotaExceeded"), (_, "XMinioStorageFull"), (507, _):
            return FileProviderError(.insufficientQuota, "'\(bucket)' is full (\(serverMessage))")
        case (_, "EntityTooLarge"), (_, "KeyTooLongError"), (_, "MetadataTooLarge"), (413, _):
            return FileProviderError(.cannotSynchronize, "the server will not take it (\(serverMessage))")
        case (_, "InvalidObjectState"):
            return FileProviderError(.fileReadNoPermission, "the object is archived, and has to be restored first")
        case (_, "BadDigest"), (_, "XAmzContentSHA256Mismatch"), (_, "InvalidDigest"):
            return FileProviderError(.malformedResponse, "what arrived is not what was sent (\(serverMessage))")
        case (_, "NotImplemented"), (501, _), (405, _):
            return FileProviderError(.featureUnsupported, "the server cannot do it (\(serverMessage))")
        case (429, _), (502...504, _), (_, "SlowDown"):
            return FileProviderError(.serverUnreachable, "the server is too busy (\(serverMessage))")
        case (500..., _):
            return FileProviderError(.providerDomainTemporarilyUnavailable, "the server failed (\(serverMessage))")
        case (300..<400, _):
            return FileProviderError(
                .serverUnreachable, "'\(bucket)' is elsewhere (\(serverMessage)): name its --region or --endpoint")
        case (400, _) where mayBeAboutName && code != "RequestTimeout":
            return FileProviderError(
                .cannotSynchronize, "the server does not take control characters in names (\(serverMessage))")
        default: return FileProviderError(.malformedResponse, "the server refuses what was asked (\(serverMessage))")
        }
    }

    /// The server's own messages quote the request, and too much for a log.
    private static func reason(_ code: String) -> String? {
        switch code {
        case "InvalidAccessKeyId": "it does not know the access key"
        case "SignatureDoesNotMatch": "the secret key is not the access key's"
        case "ExpiredToken", "TokenRefreshRequired": "the session has expired"
        case "InvalidToken": "the session token is wrong"
        case "": nil
        default: String(code.prefix(100))
        }
    }
}
