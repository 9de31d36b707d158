import Control
import Foundation

/// A line of the daemon's log, for scripts. Nil is what the line does not say.
struct LogLine: Codable, Hashable {
    /// RFC 3339.
    @ExplicitNull var time: String? = nil
    /// `debug`, `info`, `notice`, `warning`, `error` or `critical`.
    @ExplicitNull var level: String? = nil
    /// The domain that the message is about.
    @ExplicitNull var domain: String? = nil
    var message: String

    /// The levels by their priorities in the journal. (syslog(3))
    private static let levels = [
        "7": "debug", "6": "info", "5": "notice", "4": "warning", "3": "error", "2": "critical",
    ]
}

extension LogLine {
    /// A line of the file: `TIME LEVEL PROGRAM: `, of the daemon `domain=NAME: ` and `[MODULE] `, and the message. All of another line,
    /// such as one of a backtrace, is the message.
    init(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
        guard words.count == 4, Self.levels.values.contains(words[1]), words[2].hasSuffix(":") else {
            self.init(message: line)
            return
        }
        let (domain, message) = Self.parts(of: words[3])
        self.init(time: Self.time(words[0]), level: words[1], domain: domain, message: message)
    }

    /// As RFC 3339 has it, with a colon in the offset; nil for a time without an offset.
    private static func time(_ text: String) -> String? {
        let offset = text.suffix(5)
        guard offset.count == 5, offset.hasPrefix("+") || offset.hasPrefix("-"),
            offset.dropFirst().allSatisfy(\.isNumber)
        else { return nil }
        return "\(text.dropLast(2)):\(text.suffix(2))"
    }

    /// The name of a domain can contain anything but a colon, which ends it (`EscapingLogHandler`).
    private static func parts(of text: String) -> (domain: String?, message: String) {
        let key = "domain="
        var rest = text.utf8[...]
        var domain: String?
        if rest.starts(with: key.utf8) {
            let name = rest.dropFirst(key.utf8.count).prefix { $0 != UInt8(ascii: ":") }
            let behind = rest[name.endIndex...]
            guard !name.isEmpty, behind.starts(with: ": ".utf8) else { return (nil, text) }
            domain = String(decoding: name, as: UTF8.self)
            rest = behind.dropFirst(2)
        }
        guard rest.first == UInt8(ascii: "[") else { return (nil, text) }
        let module = rest.dropFirst().prefix { $0 != UInt8(ascii: "]") && $0 != UInt8(ascii: " ") }
        let behind = rest[module.endIndex...]
        guard !module.isEmpty, behind.starts(with: "] ".utf8) else { return (nil, text) }
        return (domain, String(decoding: behind.dropFirst(2), as: UTF8.self))
    }
}

extension LogLine {
    /// The options of journalctl for what the journal has to say of each entry, and the time. Without `--all` a message of more than 4096
    /// bytes is null.
    static let journalOutput = ["--output", "json", "--all", "--output-fields", "MESSAGE,PRIORITY,YONDER_DOMAIN"]

    private struct JournalEntry: Decodable {
        enum CodingKeys: String, CodingKey {
            case microseconds = "__REALTIME_TIMESTAMP"
            case priority = "PRIORITY"
            case domain = "YONDER_DOMAIN"
            case message = "MESSAGE"
        }

        let microseconds: String?
        let priority: String?
        let domain: String?
        let message: String?

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            func text(_ key: CodingKeys) -> String? {
                if let text = try? fields.decode(String.self, forKey: key) { return text }
                // A field that is not printable is an array of its bytes.
                guard let bytes = try? fields.decode([UInt8].self, forKey: key) else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
            microseconds = text(.microseconds)
            priority = text(.priority)
            domain = text(.domain)
            message = text(.message)
        }
    }

    /// An entry of the journal as `journalctl --output json` prints it.
    init(journalEntry line: String) {
        guard let entry = try? JSONDecoder().decode(JournalEntry.self, from: Data(line.utf8)) else {
            self.init(message: line)
            return
        }
        var message = entry.message ?? ""
        // The daemon begins the message with it, for views that show no fields.
        if let domain = entry.domain, message.hasPrefix("\(domain): ") {
            message = String(message.dropFirst(domain.count + 2))
        }
        let time = entry.microseconds.flatMap { Int64($0) }.map {
            Timestamp.text(seconds: $0 / 1_000_000, nanoseconds: $0 % 1_000_000 * 1000)
        }
        self.init(
            time: time, level: entry.priority.flatMap { Self.levels[$0] }, domain: entry.domain, message: message)
    }
}
