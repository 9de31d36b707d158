import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@Suite struct EarlyUploadProgressTests {
    private final class Calls: Sendable {
        let answers = Mutex(0)
        let waits = Mutex<[Bool]>([])
    }

    private static func begin(_ file: GrowingFile, in call: CallContext) -> EarlyUpload {
        CallContext.$current.withValue(call) {
            EarlyUpload(file.growing, hidden: RemotePath(["hidden"])) { Array($0.prefix(16)) }
        }
    }

    @Test("PATH-20: the call that sends a file early makes progress to its end, and the one that completes it waits")
    func progress() async throws {
        let calls = Calls()
        let sending = CallContext(
            urgency: CallUrgency(false), wait: { _ in }, answered: { calls.answers.withLock { $0 += 1 } })
        let completing = CallContext(
            urgency: CallUrgency(false), wait: { isWaiting in calls.waits.withLock { $0.append(isWaiting) } })
        let file = try GrowingFile()
        try file.write(GrowingFile.bytes(1 << 20), at: 0)
        let upload = Self.begin(file, in: sending)
        file.growing.upload = upload
        let first = try await upload.next()
        #expect(first?.count == 1 << 18)
        let content = try file.content(size: 1 << 20)
        let completion = Task {
            try await CallContext.$current.withValue(completing) {
                try await content.finishEarlyUpload { _ in true }
            }
        }
        #expect(await eventually { upload.isTaken })
        var pieces = 0
        while try await upload.next() != nil { pieces += 1 }
        upload.end(isSent: true)
        let hidden = try await completion.value
        #expect(hidden == upload.hidden)
        let (answers, waits) = (calls.answers.withLock { $0 }, calls.waits.withLock { $0 })
        #expect(pieces == 3 && answers == 3)
        #expect(waits == [true, false])
    }
}
