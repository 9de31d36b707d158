import FileProvider

extension RcloneRemote {
    /// How often rclone is asked how much of an upload it has sent.
    private static let reportInterval = Duration.seconds(1)

    /// Reports how much of some content rclone has sent, while a closure has it sent. What rclone has not told counts at the end.
    ///
    /// - Parameter group: that of the call.
    func reporting(
        _ contents: ContentSource, sentIn group: String, _ body: () async throws -> Void
    ) async throws {
        let session = try await host.running()
        let report = Task {
            var sent: Int64 = 0
            while (try? await Task.sleep(for: Self.reportInterval)) != nil {
                guard let bytes = await session.transferredBytes(ofGroup: group), !Task.isCancelled else { continue }
                // What rclone sends again it counts again.
                let now = max(sent, min(bytes, contents.size))
                contents.advance(by: now - sent)
                sent = now
            }
            return sent
        }
        defer { report.cancel() }
        try await body()
        report.cancel()
        let sent = await report.value
        contents.advance(by: contents.size - sent)
    }
}
