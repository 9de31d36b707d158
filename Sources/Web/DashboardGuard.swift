import HTTPTypes
import Hummingbird
import NIOCore
import Syscalls

/// The context of a request, with the two ends of its connection.
struct DashboardContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let peer: LocalPeer.End?
    let server: LocalPeer.End?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = Self.end(source.channel.remoteAddress)
        server = Self.end(source.channel.localAddress)
    }

    private static func end(_ address: SocketAddress?) -> LocalPeer.End? {
        guard let address, let text = address.ipAddress, let port = address.port else { return nil }
        return LocalPeer.End(address: text, port: port)
    }
}

/// Lets no request through but those of the page's own browser, and gives every response the headers that confine the page.
struct DashboardGuard: RouterMiddleware {
    typealias Context = DashboardContext

    let session: DashboardSession

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await respond(to: request, context, next)
        for (name, value) in Self.headers { response.headers[name] = value }
        return response
    }

    private func respond(
        to request: Request, _ context: Context, _ next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard session.isOwn(host: request.head.authority) else {
            return Self.refusal("This address is not the dashboard's.")
        }
        // Neither token nor cookie is enough: browsers send a cookie to all ports of a host, and another user's server may have
        // got it.
        guard Self.isOfUser(context) else {
            return Self.refusal("This address belongs to another user, or its user cannot be found out.")
        }
        if request.uri.path == "/", let token = request.uri.queryParameters["token"] {
            guard let secret = session.redeem(String(token)) else {
                return Self.refusal("This address was used already. Run 'yonder dashboard' again.")
            }
            var response = Response(status: .seeOther, headers: [.location: "/"])
            response.setCookie(
                Cookie(name: session.cookie, value: secret, path: "/", httpOnly: true, sameSite: .strict))
            return response
        }
        guard session.isValid(request.cookies[session.cookie]?.value) else {
            return Self.refusal("This page has expired. Run 'yonder dashboard' again.")
        }
        if request.method != .get {
            // A page of another site can send forms, but neither JSON nor this origin.
            let type = request.headers[.contentType] ?? ""
            guard session.isOwn(origin: request.headers[.origin]), type.hasPrefix("application/json") else {
                return Self.refusal("The request does not come from the dashboard.")
            }
        }
        return try await next(request, context)
    }

    /// Whether a connection is from a process of the user whose dashboard it is, or of root.
    private static func isOfUser(_ context: DashboardContext) -> Bool {
        guard let peer = context.peer, let server = context.server,
            let user = LocalPeer.user(of: peer, connectedTo: server)
        else { return false }
        return user == Machine.userIdentifier || user == 0
    }

    private static func refusal(_ text: String) -> Response {
        Response(
            status: .forbidden, headers: [.contentType: "text/plain; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
    }

    private static let headers: [(HTTPField.Name, String)] = [
        (
            .contentSecurityPolicy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        (.xContentTypeOptions, "nosniff"),
        (.cacheControl, "no-store"),
        (Self.referrerPolicy, "no-referrer"),
        (Self.openerPolicy, "same-origin"),
    ]

    private static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .cacheControl
    private static let openerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .cacheControl
}
