import FileProvider

extension FileTimestamp {
    package static let distantFuture = FileTimestamp(nanosecondsSince1970: .max)

    /// The moment so much later.
    package func advanced(by duration: Duration) -> FileTimestamp {
        let (seconds, attoseconds) = duration.components
        return FileTimestamp(
            nanosecondsSince1970: nanosecondsSince1970 &+ seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }
}
