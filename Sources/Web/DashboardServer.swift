import Control
import Foundation
import Hummingbird
import Logging
import NIOCore
import SystemPackage

/// The page of `yonder dashboard` and its interface, on 127.0.0.1 alone. It asks the daemon as the command line does.
package struct DashboardServer: Sendable {
    private let commands: DashboardCommands
    private let port: Int
    private let session: DashboardSession
    private let token: String
    private let logger: Logger

    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - perform: asks the daemon.
    package init(port: Int, logger: Logger, perform: @escaping DashboardCommands.Performing) {
        self.port = port
        self.logger = logger
        commands = DashboardCommands(perform: perform)
        token = DashboardSession.randomText()
        session = DashboardSession(token: token)
    }

    /// Serves until the task is cancelled.
    ///
    /// - Parameter onListening: gets the address of the page, with the token, when the server listens.
    /// - Throws: `Errno` if it cannot listen.
    package func run(onListening: @escaping @Sendable (String) -> Void) async throws {
        let application = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
            onServerRunning: { [session, token] channel in
                let port = channel.localAddress?.port ?? 0
                session.begin(port: port)
                onListening("http://127.0.0.1:\(port)/?token=\(token)")
            }, logger: logger)
        do {
            try await application.run()
        } catch let error as IOError {
            throw Errno(rawValue: error.errnoCode)
        }
    }

    private var router: Router<DashboardContext> {
        let router = Router(context: DashboardContext.self)
        router.add(middleware: DashboardGuard(session: session))
        for page in DashboardPage.all {
            router.get(RouterPath(page.path)) { _, _ in page.response }
        }
        router.get("api/status") { [commands] _, _ in try await Self.answer { try await commands.status() } }
        router.get("api/pending") { [commands] _, _ in try await Self.answer { try await commands.pending() } }
        router.get("api/conflicts") { [commands] _, _ in try await Self.answer { try await commands.conflicts() } }
        router.get("api/usage") { [commands] request, _ in
            // It is decoded already: a second time, `a%20b` would be another name.
            let path = request.uri.queryParameters["path"].map { String($0) }
            return try await Self.answer { try await commands.usage(of: path ?? "") }
        }
        post("pause", on: router) { try await $0.pause($1.required(\.domain)) }
        post("resume", on: router) { try await $0.resume($1.required(\.domain)) }
        post("retry", on: router) { try await $0.retry($1.required(\.domain)) }
        post("download", on: router) { try await $0.download($1.required(\.path)) }
        post("evict", on: router) { try await $0.evict($1.required(\.path)) }
        post("resolve", on: router) { commands, action in
            try await commands.resolve(
                copy: action.required(\.path), original: action.required(\.original), keeping: action.required(\.keep))
        }
        return router
    }

    private func post(
        _ name: String, on router: Router<DashboardContext>,
        _ perform: @escaping @Sendable (DashboardCommands, DashboardAction) async throws -> Void
    ) {
        router.post(RouterPath("api/" + name)) { [commands] request, _ in
            try await Self.answer {
                let body = try await request.body.collect(upTo: Self.longestBody)
                guard let action = try? JSONDecoder().decode(DashboardAction.self, from: Data(body.readableBytesView))
                else { throw ControlError(.usage, "the request is no JSON object of texts") }
                try await perform(commands, action)
                return [String: String]()
            }
        }
    }

    private static let longestBody = 64 << 10

    /// The result as JSON, or the error as `{"message": …}` with a status for its kind.
    private static func answer(_ body: () async throws -> some Encodable) async throws -> Response {
        do {
            return try json(await body(), .ok)
        } catch let error as ControlError {
            let status: HTTPResponse.Status =
                switch error.code {
                case .unavailable, .interrupted, .alreadyRunning, .version: .serviceUnavailable
                case .usage: .badRequest
                case .notPermitted: .forbidden
                case .failed, .notAuthenticated, .timeout: .unprocessableContent
                }
            // A path that is no item is no expired page.
            return try json(["message": error.description], status == .forbidden ? .unprocessableContent : status)
        }
    }

    private static func json(_ value: some Encodable, _ status: HTTPResponse.Status) throws -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(value))))
    }
}

/// What a button of the page asks for.
struct DashboardAction: Decodable, Sendable {
    var domain: String?
    var path: String?
    var original: String?
    var keep: String?

    func required(_ field: any KeyPath<DashboardAction, String?> & Sendable) throws(ControlError) -> String {
        guard let value = self[keyPath: field], !value.isEmpty else {
            throw ControlError(.usage, "the request lacks a field")
        }
        return value
    }
}
