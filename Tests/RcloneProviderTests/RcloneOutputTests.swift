import FileProvider
import ProgramProvider
import TestSupport
import Testing

@testable import RcloneProvider

@Suite struct RcloneOutputTests {
    private static let start = "2026/07/01 12:00:00 NOTICE: Serving remote control on unix:///run/rclone"
    private static let missing =
        "2026/07/01 12:00:01 ERROR : rc: \"operations/list\": error: error in ListJSON: directory not found"
    private static let error = "2026/07/01 12:00:02 CRITICAL: Failed to rc: no memory"

    private static func output(_ lines: String...) -> RcloneOutput {
        let output = RcloneOutput(logger: nil)
        for line in lines { output.take(Array(line.utf8)) }
        output.finish(.exited("signal 9"))
        return output
    }

    @Test("RCLONE-6: the reason of an end is the status, and the last line where that is of an error") func reasons() {
        #expect(Self.output().reason == "signal 9")
        #expect(Self.output(Self.start).reason == "signal 9")
        #expect(Self.output(Self.start, Self.error).reason == "signal 9: \(Self.error)")
    }

    @Test("RCLONE-6: a directory that is missing is no error of rclone's") func answers() {
        #expect(Self.output(Self.start, Self.missing).end == Self.start)
    }

    @Test(
        "RCLONE-6: words in the names of files say nothing of the reason",
        arguments: ["quota report", "object not found", "Forbidden", "no such host"])
    func wordsInNames(_ name: String) {
        func failure(_ text: String) -> RcloneFailure {
            let body = #"{"error": "\#(text)", "input": {"fs": "test:", "remote": "\#(name)/x", "opt": {"x": true}}}"#
            return RcloneFailure(status: 500, body: Array(body.utf8))
        }
        let address = name.replacing(" ", with: "%20")
        for text in ["open /folder/\(name)/x: something else", "Put http://host/\(address)/x: something else"] {
            let other = failure(text)
            #expect(!other.isMissing)
            #expect(other.error("test:").code == .providerDomainTemporarilyUnavailable)
        }
        #expect(failure("open /folder/\(name)/x: permission denied").error("test:").code == .fileReadNoPermission)
    }
}
