import Crypto
import FileProvider
import FileProviderPaths

extension SFTPRemote: EarlyRemote {
    func receive(_ content: GrowingContent, in directory: RemotePath) async {
        let hidden = directory.appending(HiddenName.make())
        var upload: EarlyUpload?
        do {
            try await connection.changing { session in
                let begun = EarlyUpload(content, hidden: hidden, piece: Int(session.pieceLength)) {
                    Array(SHA256.hash(data: $0))
                }
                upload = begun
                content.upload = begun
                do {
                    // Write, create, and refuse an existing one. The content is for its owner until it has its mode.
                    let handle = try await open(hidden, 0x02 | 0x08 | 0x20, 0o600, session)
                    let lane = SFTPLane(session: session, handle: handle)
                    defer { lane.close() }
                    try await sendWide({ try await begun.next() }, to: hidden, on: SFTPLanes(lane))
                    try await waitForFlush(flush(lane), session)
                } catch {
                    removeHidden(hidden, session)
                    throw error
                }
            }
            upload?.end(isSent: true)
        } catch {
            // The upload of the whole file sends everything, and meets what is wrong.
            upload?.end(isSent: false)
            content.giveUp()
        }
    }
}
