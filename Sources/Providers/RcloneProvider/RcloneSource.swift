import FileProvider
import FileProviderPaths
import HTTPTransport

/// A source as the user names it: `rclone:REMOTE:PATH`. What follows `rclone:` is a remote as rclone's own commands take it.
struct RcloneSource: Hashable, Sendable {
    static let scheme = "rclone:"

    /// The root, as rclone's commands take it, without a slash at its end.
    let root: String

    /// - Throws: `providerNotFound` with the reason for an invalid source.
    init(_ source: String) throws(FileProviderError) {
        func wrong(_ why: String) -> FileProviderError {
            FileProviderError(.providerNotFound, "no such rclone source: \(why)")
        }
        guard source.utf8.starts(with: Self.scheme.utf8) else { throw wrong("it does not begin with rclone:") }
        var root = String(source.utf8.dropFirst(Self.scheme.utf8.count)) ?? ""
        while root.utf8.count > 1, root.utf8.last == UInt8(ascii: "/") { root = String(root.dropLast()) }
        guard root.utf8.contains(UInt8(ascii: ":")), root.utf8.first != UInt8(ascii: "-") else {
            throw wrong("it names no remote: rclone:REMOTE:PATH, where `rclone listremotes` shows REMOTE")
        }
        // rclone's server ends the name of a remote at the first bracket.
        guard !root.utf8.contains(UInt8(ascii: "]")), root.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw wrong("rclone cannot serve the contents of a remote with ']' or a control character in its path")
        }
        self.root = root
    }

    /// The name of the remote in rclone's configuration, with its colon, for commands that the user is told.
    var remote: String { String(root.prefix { $0 != ":" && $0 != "," }) + ":" }

    /// A directory as rclone's commands take it.
    func directory(_ path: RemotePath) -> String {
        if path.names.isEmpty { return root }
        return root + (root.hasSuffix(":") || root.hasSuffix("/") ? "" : "/") + RcloneName.text(path)
    }

    /// The path of a file on rclone's server, percent-encoded.
    func target(_ path: RemotePath) -> String {
        let names = path.names.map { PercentEncoding.encode(RcloneName.encode($0)) }
        return "/" + PercentEncoding.encode("[\(root)]") + "/" + names.joined(separator: "/")
    }
}
