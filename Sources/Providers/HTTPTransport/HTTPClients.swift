import AsyncHTTPClient
import FileProvider
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// The clients behind a transport: one for each way out, made when it is first taken.
final class HTTPClients: Sendable {
    private struct State {
        var clients: [HTTPClient.Configuration.Proxy?: HTTPClient] = [:]
        var isClosed = false
    }

    private let configuration: HTTPTransport.Configuration
    private let proxies: ProxySettings
    private let state = Mutex(State())

    init(_ configuration: HTTPTransport.Configuration, _ proxies: ProxySettings) {
        self.configuration = configuration
        self.proxies = proxies
    }

    deinit {
        // Whoever forgot to close it has no calls under way any more.
        let clients = state.withLock { Array($0.clients.values) }
        guard !clients.isEmpty else { return }
        Task { for client in clients { try? await client.shutdown() } }
    }

    func client(for url: HTTPURL) throws -> HTTPClient {
        let proxy = proxies.proxy(for: url)
        return try state.withLock { state in
            guard !state.isClosed else {
                throw FileProviderError(.userCancelled, "the connection to \(url.host) was given up")
            }
            if let client = state.clients[proxy] { return client }
            let client = HTTPClient(
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: settings(with: proxy))
            state.clients[proxy] = client
            return client
        }
    }

    func close() async {
        let clients = state.withLock { state in
            state.isClosed = true
            defer { state.clients = [:] }
            return Array(state.clients.values)
        }
        for client in clients { try? await client.shutdown() }
    }

    private func settings(with proxy: HTTPClient.Configuration.Proxy?) -> HTTPClient.Configuration {
        var settings = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: .init(connect: .nanoseconds(configuration.connectTimeout.wholeNanoseconds)),
            proxy: proxy, decompression: .disabled)
        settings.httpVersion = .automatic
        settings.connectionPool.idleTimeout = .seconds(10)
        // The gate lets no more than half of that in, and each may make another on its way: so no request waits in the
        // pool, where its time to connect would run.
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 2 * configuration.connections
        settings.connectionPool.retryConnectionEstablishment = false
        var tls = TLSConfiguration.makeClientConfiguration()
        // RFC 8996: older versions are broken.
        tls.minimumTLSVersion = .tlsv12
        if let file = configuration.environment["SSL_CERT_FILE"], !file.isEmpty {
            tls.trustRoots = .file(file)
        } else if let folder = configuration.environment["SSL_CERT_DIR"], !folder.isEmpty {
            tls.trustRoots = .file(folder.hasSuffix("/") ? folder : folder + "/")
        }
        settings.tlsConfiguration = tls
        settings.http1_1ConnectionDebugInitializer = Self.keepLittleUnsent
        settings.http2ConnectionDebugInitializer = Self.keepLittleUnsent
        return settings
    }

    /// Megabytes that wait in the kernel for a slow line would look as if nothing moved.
    private static let keepLittleUnsent: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
        // TCP_NOTSENT_LOWAT, see tcp(7).
        let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 25))
        return channel.setOption(option, value: 256 << 10).flatMapError { _ in
            channel.eventLoop.makeSucceededVoidFuture()
        }
    }
}

extension Duration {
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
