import FileNames
import FileProvider

/// A source as the user names it: `sftp://[USER@]HOST[:PORT]/PATH`. The host may be an alias in `~/.ssh/config`.
struct SFTPSource: Hashable, Sendable {
    static let scheme = "sftp://"

    var user: String?
    var host: String
    var port: UInt16?
    /// Without a path, the directory in which the server starts: the user's home.
    var path: [UInt8]

    /// - Throws: `providerNotFound` with the reason for an invalid source.
    init(_ source: String) throws(FileProviderError) {
        func wrong(_ why: String) -> FileProviderError {
            FileProviderError(.providerNotFound, "no such SFTP source: \(why)")
        }
        guard source.utf8.starts(with: Self.scheme.utf8) else { throw wrong("it does not begin with sftp://") }
        var rest = source.dropFirst(Self.scheme.count)
        var authority = rest.prefix { $0 != "/" }
        rest = rest[authority.endIndex...]
        if let at = authority.lastIndex(of: "@") {
            let name = authority[..<at]
            guard !name.contains(":") else { throw wrong("a password has no place in it: use a key and its agent") }
            user = String(name)
            authority = authority[authority.index(after: at)...]
        }
        if authority.first == "[", let end = authority.firstIndex(of: "]") {
            host = String(authority[authority.index(after: authority.startIndex)..<end])
            authority = authority[authority.index(after: end)...]
        } else {
            host = String(authority.prefix { $0 != ":" })
            authority = authority.dropFirst(host.count)
        }
        if !authority.isEmpty {
            guard authority.first == ":", let number = UInt16(authority.dropFirst()), number > 0 else {
                throw wrong("the port is no number")
            }
            port = number
        }
        // An argument of ssh that begins with a dash would be an option.
        guard !host.isEmpty, host.first != "-", user?.first != "-", user?.isEmpty != true else {
            throw wrong("the host or the user cannot be read")
        }
        var bytes = FileNameText.bytes(of: String(rest))
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        path = bytes.isEmpty ? [UInt8(ascii: ".")] : bytes
    }

    /// The arguments of `ssh`. The daemon has no terminal, so that nothing may be asked for.
    var arguments: [String] {
        var words = ["-a", "-x"]
        for option in [
            "BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=2",
            "ClearAllForwardings=yes", "RemoteCommand=none", "RequestTTY=no", "PermitLocalCommand=no",
        ] { words += ["-o", option] }
        if let user { words += ["-l", user] }
        if let port { words += ["-p", String(port)] }
        return words + ["-s", "--", host, "sftp"]
    }
}
