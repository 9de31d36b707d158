import Logging
import Syscalls
import SystemPackage

/// A log handler that writes to systemd's journal, with the priority and the metadata of each message as fields: `YONDER_DOMAIN` and
/// others. (systemd.journal-fields(7); the journal's native protocol)
package struct JournalLogHandler: LogHandler {
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.trace
    private let journal: ServiceSocket
    private let fallback: any LogHandler

    /// The longest message in bytes. One that does not fit into a datagram would have to be sent as a file.
    private static let longest = 32_768

    /// - Parameters:
    ///   - socket: that of the journal.
    ///   - fallback: gets what the journal does not take.
    package init(socket: String = "/run/systemd/journal/socket", fallback: any LogHandler) {
        journal = ServiceSocket(at: socket)
        self.fallback = fallback
    }

    /// Whether standard error is the journal's, as the service manager has announced it (systemd.exec(5), `JOURNAL_STREAM`).
    package static func isStandardError(environment: [String: String]) -> Bool {
        guard let status = try? FileStatus(of: .standardError) else { return false }
        return environment["JOURNAL_STREAM"] == "\(status.device):\(status.inode)"
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let fields = metadata.merging(event.metadata ?? [:]) { _, new in new }
        // Some views of the journal show the message without its fields.
        let domain = fields["domain"].map { "\($0): " } ?? ""
        let error = fields["error"].map { ": \($0)" } ?? ""
        let message = String(decoding: "\(domain)\(event.message)\(error)".utf8.prefix(Self.longest), as: UTF8.self)
        let lines =
            ["MESSAGE=\(message)", "PRIORITY=\(Self.priority(of: event.level))", "SYSLOG_IDENTIFIER=yonderd"]
            + ["YONDER_MODULE=\(event.source)"]
            + fields.sorted { $0.key < $1.key }.map { "YONDER_\(Self.name($0.key))=\($0.value)" }
            // The journal ignores a line without an end.
            + [""]
        do {
            try journal.send(lines)
        } catch {
            var event = event
            event.metadata = fields
            fallback.log(event: event)
        }
    }

    /// Of syslog(3).
    private static func priority(of level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }

    /// Names of fields have capital letters, digits and underscores.
    private static func name(_ key: String) -> String {
        String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}
