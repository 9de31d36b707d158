import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import yonder

@Suite struct CrashLoopTests {
    @Test("CRASH-3: a report whose keeper was killed says nothing, also when another process has its number")
    func leftReport() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let number = ProcessInfo.processInfo.processIdentifier
        let report = "keeper=\(number)\ncrashes=5\nend=signal 11\nnext=\(Int(Date.now.timeIntervalSince1970) + 5)\n"
        _ = try directory.makeFile("crash-loop", report.utf8)
        #expect(CrashLoop(in: Places(environment: ["YONDER_STATE_DIR": directory.path.string])) == nil)
    }
}
