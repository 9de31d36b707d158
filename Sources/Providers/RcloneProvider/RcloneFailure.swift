import FileProvider
import Foundation
import HTTPTransport

/// Why rclone refused a call.
struct RcloneFailure: MissingItemError, Sendable {
    /// What rclone says; a word of a backend may be in it.
    var text: String
    var status: Int
    /// The names in the paths of the call. They are in the text, and say nothing of the reason.
    private let names: [String]

    /// A response with an error repeats the parameters of the call.
    private struct Body: Decodable {
        struct Parameter: Decodable {
            var text: String?

            init(from decoder: any Decoder) { text = try? decoder.singleValueContainer().decode(String.self) }
        }

        var error: String?
        var input: [String: Parameter]?
    }

    private static let paths = ["fs", "remote", "srcFs", "srcRemote", "dstFs", "dstRemote"]

    init(status: Int, text: String, names: [String] = []) {
        (self.status, self.text, self.names) = (status, text, names)
    }

    init(status: Int, body: [UInt8]) {
        let said = try? JSONDecoder().decode(Body.self, from: Data(body))
        let names = Self.paths.compactMap { said?.input?[$0]?.text }.flatMap { path in
            path.split { $0 == "/" || $0 == ":" }.map(String.init)
        }
        self.init(
            status: status, text: said?.error ?? String(decoding: body.prefix(500), as: UTF8.self), names: names)
    }

    /// Whether there is no item of the name.
    var isMissing: Bool {
        !has("couldn't find method")
            && (status == 404 || has("directory not found") || has("object not found")
                || has("no such file or directory") || has("not a directory"))
    }

    /// Whether the backend cannot set the date of a file that is there, as Dropbox.
    var isOfFixedDates: Bool { has("can't set modified time") }

    /// The error for the system.
    ///
    /// - Parameter remote: the remote's name with its colon.
    func error(_ remote: String) -> FileProviderError {
        let words = "rclone: " + text.prefix(300).split(whereSeparator: \.isNewline).joined(separator: " ")
        if has("couldn't fetch token") || has("token expired") || has("invalid_grant") || has("empty token") {
            return FileProviderError(
                .notAuthenticated,
                "the access of '\(remote)' has expired: run `rclone config reconnect \(remote)` (\(words))")
        }
        if has("didn't find section in config file") || has("didn't find backend") {
            return FileProviderError(
                .providerNotFound,
                "rclone has no remote '\(remote)': `rclone listremotes` shows all, and `rclone config` makes one")
        }
        // rclone cannot reach the host.
        for text in [
            "connection refused", "no such host", "i/o timeout", "network is unreachable", "no route to host",
            "connection reset", "context deadline exceeded", "TLS handshake", "unexpected EOF", "server misbehaving",
        ] where has(text) {
            return FileProviderError(.serverUnreachable, "'\(remote)' cannot be reached (\(words))")
        }
        if has("unauthorized") || has("InvalidAccessKeyId") || has("SignatureDoesNotMatch")
            || has("unable to authenticate")
        {
            return FileProviderError(
                .notAuthenticated,
                "'\(remote)' rejects the credentials: run `rclone config reconnect \(remote)`, or `rclone config` (\(words))"
            )
        }
        if isMissing { return FileProviderError(.noSuchItem, words) }
        if has("no space left") || has("quota") || has("Insufficient Storage") || has("storage limit") {
            return FileProviderError(.insufficientQuota, words)
        }
        if has("file name too long") || has("invalid name") || has("illegal") {
            return FileProviderError(.cannotSynchronize, "the remote cannot store this name (\(words))")
        }
        if has("permission denied") || has("forbidden") || has("read-only") || has("AccessDenied") {
            return FileProviderError(.fileReadNoPermission, "the remote does not allow it (\(words))")
        }
        return FileProviderError(.providerDomainTemporarilyUnavailable, words)
    }

    private func has(_ part: String) -> Bool {
        func isPart(of text: String) -> Bool { text.range(of: part, options: .caseInsensitive) != nil }
        guard isPart(of: text) else { return false }
        var rest = text
        for name in names where isPart(of: name) {
            for form in [name, PercentEncoding.encode(name)] { rest = rest.replacing(form, with: "") }
        }
        return isPart(of: rest)
    }
}
