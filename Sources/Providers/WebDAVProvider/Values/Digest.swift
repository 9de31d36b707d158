import Crypto
import FileProvider
import HTTPTransport

/// A challenge in `WWW-Authenticate`.
struct Challenge: Hashable, Sendable {
    /// In lower case.
    var scheme: String
    /// By their names in lower case.
    var parameters: [String: String] = [:]

    /// All challenges of a response. One header may have several, and commas separate challenges as well as parameters.
    static func all(in fields: HTTPFields) -> [Challenge] {
        var challenges: [Challenge] = []
        for value in fields.values(of: "WWW-Authenticate") {
            var scanner = Scanner(bytes: Array(value.utf8))
            while let word = scanner.word() {
                if scanner.skip(UInt8(ascii: "=")), !challenges.isEmpty {
                    challenges[challenges.count - 1].parameters[word.lowercased()] = scanner.value()
                } else {
                    challenges.append(Challenge(scheme: word.lowercased()))
                }
            }
        }
        return challenges
    }

    private struct Scanner {
        var bytes: [UInt8]
        var position = 0

        mutating func word() -> String? {
            while position < bytes.count,
                bytes[position] == 0x20 || bytes[position] == UInt8(ascii: ",") || bytes[position] == 9
            {
                position += 1
            }
            let start = position
            while position < bytes.count, !" ,=\"\t".utf8.contains(bytes[position]) { position += 1 }
            // An unexpected byte must not cause an endless loop.
            if position == start, position < bytes.count {
                position = bytes.count
                return nil
            }
            return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
        }

        mutating func skip(_ byte: UInt8) -> Bool {
            var next = position
            while next < bytes.count, bytes[next] == 0x20 { next += 1 }
            guard next < bytes.count, bytes[next] == byte else { return false }
            position = next + 1
            return true
        }

        mutating func value() -> String {
            while position < bytes.count, bytes[position] == 0x20 { position += 1 }
            guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
                let start = position
                while position < bytes.count, bytes[position] != UInt8(ascii: ","), bytes[position] != 0x20 {
                    position += 1
                }
                return String(decoding: bytes[start..<position], as: UTF8.self)
            }
            position += 1
            var out: [UInt8] = []
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
                if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
                out.append(bytes[position])
                position += 1
            }
            position += 1
            return String(decoding: out, as: UTF8.self)
        }
    }
}

/// The answer to a Digest challenge (RFC 7616).
struct DigestAnswer: Sendable {
    enum Algorithm: Sendable, Hashable {
        case md5
        case sha256
    }

    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: Algorithm
    /// As the server wrote it.
    let algorithmName: String?
    let isSession: Bool
    let hasQuality: Bool

    /// The name of the method, for any nonce.
    var name: String { "digest \(algorithm)\(isSession ? "-sess" : "")" }

    /// - Returns: nil for a challenge that is not supported.
    init?(_ challenge: Challenge) {
        guard challenge.scheme == "digest", let realm = challenge.parameters["realm"],
            let nonce = challenge.parameters["nonce"]
        else { return nil }
        self.realm = realm
        self.nonce = nonce
        opaque = challenge.parameters["opaque"]
        algorithmName = challenge.parameters["algorithm"]
        switch (algorithmName ?? "MD5").lowercased() {
        case "md5": (algorithm, isSession) = (.md5, false)
        case "md5-sess": (algorithm, isSession) = (.md5, true)
        case "sha-256": (algorithm, isSession) = (.sha256, false)
        case "sha-256-sess": (algorithm, isSession) = (.sha256, true)
        default: return nil
        }
        let qualities = (challenge.parameters["qop"] ?? "").split { $0 == "," || $0 == " " }
        hasQuality = qualities.contains { $0.lowercased() == "auth" }
        guard hasQuality || qualities.isEmpty else { return nil }
    }

    func authorization(
        _ method: String, _ target: String, _ credentials: WebDAVCredentials, count: Int, clientNonce: String
    ) -> String {
        var secret = hash("\(credentials.user):\(realm):\(credentials.password)")
        if isSession { secret = hash("\(secret):\(nonce):\(clientNonce)") }
        let question = hash("\(method):\(target)")
        let padded = count.padded(to: 8, radix: 16)
        let response =
            hasQuality
            ? hash("\(secret):\(nonce):\(padded):\(clientNonce):auth:\(question)")
            : hash("\(secret):\(nonce):\(question)")
        var parts = [
            "username=\(Self.quoted(credentials.user))", "realm=\(Self.quoted(realm))", "nonce=\(Self.quoted(nonce))",
            "uri=\(Self.quoted(target))", "response=\"\(response)\"",
        ]
        if let algorithmName { parts.append("algorithm=\(algorithmName)") }
        if let opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        if hasQuality { parts += ["qop=auth", "nc=\(padded)"] }
        if hasQuality || isSession { parts.append("cnonce=\"\(clientNonce)\"") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private func hash(_ text: String) -> String {
        let bytes = Array(text.utf8)
        switch algorithm {
        case .md5: return Insecure.MD5.hash(data: bytes).hexadecimal
        case .sha256: return SHA256.hash(data: bytes).hexadecimal
        }
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
