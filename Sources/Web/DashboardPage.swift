import Hummingbird

/// A file of the dashboard, compiled in from `Page`.
struct DashboardPage: Sendable {
    let path: String
    let type: String
    let bytes: [UInt8]

    static let all =
        [
            DashboardPage(path: "/", type: "text/html; charset=utf-8", bytes: PackageResources.index_html),
            DashboardPage(path: "/style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
        ]
        + [
            ("script", PackageResources.script_js), ("elements", PackageResources.elements_js),
            ("requests", PackageResources.requests_js), ("traffic", PackageResources.traffic_js),
            ("treemap", PackageResources.treemap_js),
        ].map { DashboardPage(path: "/\($0).js", type: "text/javascript; charset=utf-8", bytes: $1) }

    var response: Response {
        Response(
            status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
