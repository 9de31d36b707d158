import FileProvider

/// Why `ssh` ended, by what it wrote to its standard error.
enum SSHFailure {
    static func error(_ said: String, host: String) -> FileProviderError {
        let lines = said.split(whereSeparator: \.isNewline).map { $0.trimmingPrefix { $0 == " " } }
        let last = lines.last.map { String($0.prefix(200)) } ?? "the connection was closed"
        func has(_ text: String) -> Bool { said.contains(text) }
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return FileProviderError(
                .notAuthenticated,
                "the host key of '\(host)' has changed: if that is right, run `ssh-keygen -R` and `ssh` for it once")
        }
        if has("Host key verification failed") || has("host key is known") {
            return FileProviderError(
                .notAuthenticated, "the host key of '\(host)' is not known: run `ssh` for it once, and accept the key")
        }
        if has("Permission denied") || has("Too many authentication failures") {
            return FileProviderError(
                .notAuthenticated, "'\(host)' accepts no key that ssh offers without asking: add the key to the agent")
        }
        if has("subsystem request failed") {
            return FileProviderError(.serverUnreachable, "'\(host)' has no SFTP")
        }
        return FileProviderError(.serverUnreachable, "'\(host)' cannot be reached: \(last)")
    }
}

extension SFTPStatus {
    var error: FileProviderError {
        let words = message.isEmpty ? "status \(code)" : message
        return switch code {
        case Self.noSuchFile: FileProviderError(.noSuchItem, "no such file on the server (\(words))")
        case Self.permissionDenied: FileProviderError(.fileReadNoPermission, "the server does not allow it (\(words))")
        case 6, 7: FileProviderError(.serverUnreachable, "the server has lost its connection (\(words))")
        case Self.unsupported: FileProviderError(.featureUnsupported, "the server cannot do it (\(words))")
        case Self.failure: FileProviderError(.providerDomainTemporarilyUnavailable, "the server failed (\(words))")
        default: FileProviderError(.malformedResponse, "the server refuses what was asked (\(words))")
        }
    }

    /// Translates what is thrown below for the system.
    static func translating<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let status as SFTPStatus {
            throw status.error
        } catch is SFTPReader.Malformed {
            throw FileProviderError(.malformedResponse, "the server's response is not SFTP")
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        }
    }
}
