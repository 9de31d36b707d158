import FileProvider

extension FileTimestamp {
    package static let distantFuture = FileTimestamp(nanosecondsSince1970: .max)

    /// A remote that stores dates cuts them to two seconds at most, as FAT does.
    static let coarsest = Duration.seconds(2)

    /// Whether a remote that was given a time can have cut it to this one.
    func isTruncation(of time: FileTimestamp) -> Bool { self <= time && time < advanced(by: Self.coarsest) }

    /// The moment so much later.
    package func advanced(by duration: Duration) -> FileTimestamp {
        let (seconds, attoseconds) = duration.components
        return FileTimestamp(
            nanosecondsSince1970: nanosecondsSince1970 &+ seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }
}
