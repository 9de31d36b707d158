import Foundation

/// `~/.netrc`, as curl and ftp read it.
package enum Netrc {
    /// The credentials for a host.
    ///
    /// - Parameter user: only for this one; nil for any.
    package static func credentials(for host: String, user: String?, in text: String) -> WebDAVCredentials? {
        var words = Self.words(of: text)[...]
        func next() -> String? { words.popFirst() }
        var fallback: WebDAVCredentials?
        while let word = next() {
            guard word == "machine" || word == "default" else { continue }
            let machine = word == "machine" ? next() : nil
            var (login, password): (String?, String?) = (nil, nil)
            entry: while let key = words.first {
                switch key {
                case "machine", "default": break entry
                case "login":
                    _ = next()
                    login = next()
                case "password":
                    _ = next()
                    password = next()
                case "account":
                    _ = next()
                    _ = next()
                default: _ = next()
                }
            }
            guard let password, let name = login ?? user, user == nil || name.utf8.elementsEqual((user ?? "").utf8)
            else {
                continue
            }
            let found = WebDAVCredentials(user: name, password: password)
            if machine == nil { fallback = fallback ?? found }
            if machine?.lowercased() == host.lowercased() { return found }
        }
        return fallback
    }

    /// The credentials in the user's own file, or the one that `NETRC` names.
    package static func credentials(
        for host: String, user: String?, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> WebDAVCredentials? {
        let path = environment["NETRC"] ?? environment["HOME"].map { $0 + "/.netrc" }
        guard let path, let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        return credentials(for: host, user: user, in: text)
    }

    /// The words of the file, some in quotes, without comments (lines that begin with `#`) and macros.
    private static func words(of text: String) -> [String] {
        var words: [String] = []
        var isMacro = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if isMacro {
                if line.allSatisfy(\.isWhitespace) { isMacro = false }
                continue
            }
            var rest = line.drop(while: \.isWhitespace)
            if rest.first == "#" { continue }
            while let first = rest.first {
                if first == "\"" {
                    var word = ""
                    rest = rest.dropFirst()
                    while let character = rest.popFirst(), character != "\"" {
                        if character == "\\", let escaped = rest.popFirst() {
                            word.append(escaped)
                        } else {
                            word.append(character)
                        }
                    }
                    words.append(word)
                } else {
                    let word = rest.prefix { !$0.isWhitespace }
                    rest = rest[word.endIndex...]
                    if word == "macdef" { isMacro = true } else if !isMacro { words.append(String(word)) }
                }
                rest = rest.drop(while: \.isWhitespace)
            }
        }
        return words
    }
}
