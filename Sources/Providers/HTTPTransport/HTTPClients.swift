import AsyncHTTPClient
import FileProvider
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// The clients of a transport: one for direct connections and one for each proxy, created on first use.
final class HTTPClients: Sendable {
    private struct State {
        var clients: [HTTPClient.Configuration.Proxy?: HTTPClient] = [:]
        var isClosed = false
    }

    private let connections: Int
    private let connectTimeout: Duration
    private let environment: [String: String]
    private let proxies: ProxySettings
    private let state = Mutex(State())

    /// - Parameters:
    ///   - connections: the number of concurrent requests to one server.
    ///   - environment: has `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    init(connections: Int, connectTimeout: Duration, environment: [String: String], _ proxies: ProxySettings) {
        self.connections = connections
        self.connectTimeout = connectTimeout
        self.environment = environment
        self.proxies = proxies
    }

    deinit {
        // No request is in flight, because each holds a reference.
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
            return Array(exchange(&state.clients, with: [:]).values)
        }
        for client in clients { try? await client.shutdown() }
    }

    private func settings(with proxy: HTTPClient.Configuration.Proxy?) -> HTTPClient.Configuration {
        var settings = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: .init(connect: .nanoseconds(connectTimeout.wholeNanoseconds)),
            proxy: proxy, decompression: .disabled)
        settings.httpVersion = .automatic
        settings.connectionPool.idleTimeout = .seconds(10)
        // The gate admits half as many, and each request may make another one. So no request waits in the pool, where its
        // connect timeout would run.
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 2 * connections
        settings.connectionPool.retryConnectionEstablishment = false
        var tls = TLSConfiguration.makeClientConfiguration()
        // RFC 8996: older versions are broken.
        tls.minimumTLSVersion = .tlsv12
        if let file = environment["SSL_CERT_FILE"], !file.isEmpty {
            tls.trustRoots = .file(file)
        } else if let folder = environment["SSL_CERT_DIR"], !folder.isEmpty {
            tls.trustRoots = .file(folder.hasSuffix("/") ? folder : folder + "/")
        }
        settings.tlsConfiguration = tls
        settings.http1_1ConnectionDebugInitializer = Self.setSocketOptions
        settings.http2ConnectionDebugInitializer = Self.setSocketOptions
        return settings
    }

    /// Limits the unsent bytes in the kernel: megabytes that wait for a slow network would look like a stall. Probes a connection on which
    /// nothing moves for half a minute, and breaks it when the host has taken nothing for 90 seconds: while a server works for minutes,
    /// nothing else tells that its host is gone, and routers forget connections without packets.
    private static let setSocketOptions: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
        // TCP_NOTSENT_LOWAT, SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT and TCP_USER_TIMEOUT, see tcp(7).
        let options: [(level: NIOBSDSocket.OptionLevel, name: NIOBSDSocket.Option, value: Int)] = [
            (.tcp, .init(rawValue: 25), 256 << 10), (.socket, .so_keepalive, 1), (.tcp, .init(rawValue: 4), 30),
            (.tcp, .init(rawValue: 5), 20), (.tcp, .init(rawValue: 6), 3), (.tcp, .init(rawValue: 18), 90_000),
        ]
        let results = options.map { option in
            channel.setOption(
                ChannelOptions.Types.SocketOption(level: option.level, name: option.name), value: option.value
            ).flatMapError { _ in channel.eventLoop.makeSucceededVoidFuture() }
        }
        return EventLoopFuture.andAllSucceed(results, on: channel.eventLoop)
    }
}
