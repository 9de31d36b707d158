import AsyncHTTPClient
import FileProvider
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SystemPackage

/// What went wrong on the way, and whether the server can have acted on the request.
struct TransportFailure: Error {
    var error: FileProviderError
    /// The connection was there and broke: what is harmless may be tried again on another.
    var isBroken: Bool

    init(_ error: FileProviderError, isBroken: Bool) {
        self.error = error
        self.isBroken = isBroken
    }

    init(_ cause: any Error, host: String) {
        if let shortage = Self.shortage(in: cause) {
            self.init(.shortageHere(shortage), isBroken: false)
            return
        }
        switch cause {
        case let failure as TransportFailure:
            self = failure
        case let error as FileProviderError:
            self.init(error, isBroken: false)
        case is CancellationError:
            self.init(FileProviderError(.userCancelled), isBroken: false)
        case let error as HTTPClientError:
            self.init(error, host)
        case let error as NIOConnectionError:
            self.init(error, host)
        case let error as IOError:
            let isRefusal = [ECONNREFUSED, ENETUNREACH, EHOSTUNREACH].contains(error.errnoCode)
            self.init(Self.unreachable(host, Self.sentence(error)), isBroken: !isRefusal)
        case let error as ChannelError:
            self.init(error, host)
        case let error as NIOSSLError:
            self.init(Self.untrusted(host, "\(error)"), isBroken: false)
        case let error as NIOSSLExtraError:
            self.init(Self.untrusted(host, error.description), isBroken: false)
        case let error as BoringSSLError:
            self.init(Self.untrusted(host, "\(error)"), isBroken: false)
        case let error as HTTPParserError where error != .invalidEOFState && error != .closedConnection:
            self.init(FileProviderError(.malformedResponse, "\(host) does not speak HTTP: \(error)"), isBroken: false)
        default:
            self.init(Self.unreachable(host, "the connection broke (\(cause))"), isBroken: true)
        }
    }

    private init(_ error: HTTPClientError, _ host: String) {
        switch error {
        case .cancelled:
            self.init(FileProviderError(.userCancelled), isBroken: false)
        case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout, .httpProxyHandshakeTimeout,
            .socksHandshakeTimeout:
            self.init(Self.unreachable(host, "it does not answer"), isBroken: false)
        case .proxyAuthenticationRequired:
            self.init(
                FileProviderError(.notAuthenticated, "the proxy on the way to \(host) wants credentials"),
                isBroken: false)
        case .invalidProxyResponse:
            self.init(Self.unreachable(host, "the proxy on the way refuses to connect to it"), isBroken: false)
        case .remoteConnectionClosed, .uncleanShutdown, .requestStreamCancelled:
            self.init(Self.unreachable(host, "it closed the connection"), isBroken: true)
        case .alreadyShutdown:
            self.init(FileProviderError(.userCancelled, "the connection to \(host) was given up"), isBroken: false)
        default:
            self.init(
                FileProviderError(.malformedResponse, "\(host): \(error.shortDescription)"), isBroken: false)
        }
    }

    private init(_ error: NIOConnectionError, _ host: String) {
        let cause: String
        if let failed = error.connectionErrors.first {
            cause = (failed.error as? IOError).map(Self.sentence) ?? "it does not answer (\(failed.error))"
        } else if error.dnsAError ?? error.dnsAAAAError != nil {
            cause = "its address cannot be found"
        } else {
            cause = "it cannot be connected to"
        }
        self.init(Self.unreachable(host, cause), isBroken: false)
    }

    private init(_ error: ChannelError, _ host: String) {
        if case .connectTimeout = error {
            self.init(Self.unreachable(host, "it does not answer"), isBroken: false)
        } else {
            self.init(Self.unreachable(host, "the connection broke (\(error))"), isBroken: true)
        }
    }

    /// What this machine has run out of, where that is why a connection could not be made or used.
    private static func shortage(in cause: any Error) -> Errno? {
        let errno: Errno? =
            switch cause {
            case let error as IOError: Errno(rawValue: error.errnoCode)
            case let error as Errno: error
            case let error as NIOConnectionError:
                error.connectionErrors.lazy.compactMap { shortage(in: $0.error) }.first
            default: nil
            }
        return errno.flatMap { $0.isShortageHere ? $0 : nil }
    }

    private static func sentence(_ error: IOError) -> String {
        Errno(rawValue: error.errnoCode).description.lowercased()
    }

    private static func unreachable(_ host: String, _ cause: String) -> FileProviderError {
        FileProviderError(.serverUnreachable, "\(host) cannot be reached: \(cause)")
    }

    private static func untrusted(_ host: String, _ cause: String) -> FileProviderError {
        let words = reason(of: cause)
        let explanation: String
        // As BoringSSL calls it, also when the server's alert says so.
        if cause.contains("UNSUPPORTED_PROTOCOL") || cause.contains("PROTOCOL_VERSION") {
            explanation = "it offers neither TLS 1.2 nor TLS 1.3 (\(words))"
        } else if cause.contains("WRONG_VERSION_NUMBER") || cause.contains("internal:HTTP_REQUEST") {
            explanation =
                "what answers does not speak TLS (\(words)); 'webdav://', or an endpoint with 'http://', connects without"
        } else {
            explanation = "\(words); a certificate authority of your own is named in SSL_CERT_FILE"
        }
        return FileProviderError(.serverUnreachable, "no safe connection to \(host): \(explanation)")
    }

    /// The reasons that BoringSSL has given, without its own source files and numbers.
    private static func reason(of cause: String) -> String {
        let reasons = cause.matches(of: /OPENSSL_internal:([A-Z0-9_]+)/).map { match in
            match.1.lowercased().replacing("_", with: " ")
        }
        return reasons.isEmpty ? cause : reasons.joined(separator: ", ")
    }
}
