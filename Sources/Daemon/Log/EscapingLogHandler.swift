import Control
import Logging

/// A log handler that writes each message on one line. Messages contain text of remotes (names, fields of responses,
/// addresses); control characters are escaped here, where the log is written.
package struct EscapingLogHandler: LogHandler {
    private var handler: any LogHandler
    private let level: AdjustableLogLevel
    private let file: LogFile?
    /// That of one logger alone, where it is higher.
    private var own = Logger.Level.trace

    /// - Parameters:
    ///   - level: that of all loggers with this handler, but those that have set a higher one.
    ///   - file: to which the handler writes lines for `yonder log`; nil for another one.
    package init(_ handler: any LogHandler, level: AdjustableLogLevel, file: LogFile? = nil) {
        self.handler = handler
        self.level = level
        self.file = file
    }

    package var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue.mapValues(Self.escaped) }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue.map(Self.escaped) }
    }

    package var logLevel: Logger.Level {
        get { max(own, level.current) }
        set { own = newValue }
    }

    package func log(event: LogEvent) {
        var event = event
        event.message = "\(LineText.escaped(event.message.description))"
        event.metadata = event.metadata?.mapValues(Self.escaped)
        // The error is escaped, too; the wrapped handler would append it unescaped.
        if let error = event.error {
            event.error = nil
            event.metadata = (event.metadata ?? [:]).merging(
                ["error": .string(LineText.escaped("\(error)"))], uniquingKeysWith: { one, _ in one })
        }
        guard let file else { return handler.log(event: event) }
        // What reads the file needs to know where the name ends, which can contain anything but a colon
        // (`FileProviderDomain.isValid`).
        if let domain = event.metadata?["domain"] ?? handler[metadataKey: "domain"] {
            event.metadata = (event.metadata ?? [:]).merging(
                ["domain": .string("\(domain):")], uniquingKeysWith: { _, ended in ended })
        }
        file.append("\(event.message)".utf8.count + Self.surroundings) { handler.log(event: event) }
    }

    /// About the length in bytes of the time, the level and the metadata of a line.
    private static let surroundings = 80

    private static func escaped(_ value: Logger.MetadataValue) -> Logger.MetadataValue {
        .string(LineText.escaped(value.description))
    }
}
