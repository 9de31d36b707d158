import Foundation
import TestSupport
import Testing

/// Programs whose standard input and outputs are closed.
extension RealMount.CommandLine {
    @Test(
        "LOG-5: a daemon that is started without standard descriptors gives their numbers to no file of its own",
        .enabled("only root can see what a daemon has open") { FUSEAvailability.isRoot })
    func closedDescriptors() async throws {
        try await Installation.run { yonder in
            let daemon = try await BackgroundProgram(
                "sh", "-c", "exec \"$0\" <&- >&- 2>&-", Installation.program + "d", environment: yonder.environment)
            defer { daemon.kill() }
            #expect(try await eventually(within: .seconds(20)) { try await yonder.yonder("domains").status == 0 })
            for number in 0...2 {
                let link = "/proc/\(daemon.processIdentifier)/fd/\(number)"
                #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/null")
            }
            try await yonder.yonder("shutdown").expectSuccess()
        }
    }
}
