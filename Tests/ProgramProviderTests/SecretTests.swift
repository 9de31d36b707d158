import FileProvider
import Foundation
import SystemPackage
import Testing

@testable import ProgramProvider

extension HostileProgramTests {
    @Test("PROGRAM-4: secrets come with 'initialize', and are neither arguments nor in the environment") func secrets()
        async throws
    {
        let served = try ServedByProgram(fault: "dump")
        _ = try await served.factory.probe(served.domain.source, served.settings)
        let dump = try String(contentsOfFile: served.root.string + ".dump", encoding: .utf8)
        await served.dispose()
        let lines = dump.split(separator: "\n")
        #expect(lines.count == 4 && lines.last == "{\"token\": \"secret word\"}", "\(lines)")
        #expect(lines.dropLast().allSatisfy { !$0.contains("secret word") })
    }
}
