/// A source as another program writes it, for example `davs://host/path`.
package enum ForeignSource {
    private static let schemes = [
        "https": "webdavs", "http": "webdav", "davs": "webdavs", "dav": "webdav", "ssh": "sftp", "sshfs": "sftp",
        "file": "",
    ]

    /// The same source as Yonder writes it; nil if it does not look like one of another program.
    package static func translation(of source: String) -> String? {
        guard let end = source.firstRange(of: "://"), let scheme = schemes[String(source[..<end.lowerBound])]
        else { return nil }
        let rest = source[end.upperBound...]
        if scheme.isEmpty { return rest.hasPrefix("/") ? String(rest) : nil }
        return "\(scheme)://\(rest)"
    }
}
