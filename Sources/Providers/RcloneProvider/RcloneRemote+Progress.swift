import FileProvider
import ProgramProvider

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
        let sent = SentBytes(of: contents)
        // Detached: that rclone answers is no progress of the call.
        let report = Task.detached {
            while (try? await Task.sleep(for: Self.reportInterval)) != nil {
                guard let bytes = await session.transferredBytes(ofGroup: group), !Task.isCancelled else { continue }
                sent.note(bytes)
            }
        }
        defer { report.cancel() }
        try await body()
        sent.noteAll()
    }
}
