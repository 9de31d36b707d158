import Control
import Logging

/// A log handler that writes each message on one line. Messages contain text of remotes (names, fields of responses,
/// addresses); control characters are escaped here, where the log is written.
package struct EscapingLogHandler: LogHandler {
    private var handler: any LogHandler

    package init(_ handler: any LogHandler) {
        self.handler = handler
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
        get { handler.logLevel }
        set { handler.logLevel = newValue }
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
        handler.log(event: event)
    }

    private static func escaped(_ value: Logger.MetadataValue) -> Logger.MetadataValue {
        .string(LineText.escaped(value.description))
    }
}
