import FileProvider

extension FileTimestamp {
    package static let distantFuture = FileTimestamp(nanosecondsSince1970: .max)

    /// A remote that stores dates cuts them to two seconds at most, as FAT does.
    static let coarsest = Duration.seconds(2)

    /// Whether a remote that was given a time can have cut it to this one.
    func isTruncation(of time: FileTimestamp) -> Bool {
        let rest = time.nanosecondsSince1970.saturatingSubtract(nanosecondsSince1970)
        return rest >= 0 && .nanoseconds(rest) < Self.coarsest
    }

    /// The moment so much later, or the nearest that can be represented.
    package func advanced(by duration: Duration) -> FileTimestamp {
        let (seconds, attoseconds) = duration.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let whole = overflow ? (seconds < 0 ? Int64.min : .max) : scaled
        let later = nanosecondsSince1970.saturatingAdd(whole)
        return FileTimestamp(nanosecondsSince1970: later.saturatingAdd(attoseconds / 1_000_000_000))
    }
}
