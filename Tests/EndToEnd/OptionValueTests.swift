import Control
import Testing

@testable import Daemon
@testable import yonder

@Suite struct OptionValueTests {
    private func shown(_ options: DomainOptions, _ name: String) throws -> String {
        let option = options.report(for: "/source").first { $0.name == name }
        return try #require(option?.value)
    }

    @Test(
        "CMD-5: set takes each cache limit that show prints",
        arguments: [0, 1, 32 << 10, 64 << 10, 10 << 30] as [Int64])
    func limits(_ bytes: Int64) throws {
        var options = DomainOptions()
        options.cacheLimit = bytes
        let text = try shown(options, "cache-limit")
        let size = try #require(ByteCount(argument: text))
        #expect(size.bytes == bytes && size.missingUnit == nil)
    }

    @Test("CMD-5: set takes each cache time that show prints", arguments: ["0.5", "90s", "12h", "36500d"])
    func times(_ text: String) throws {
        let given = try #require(TimeSpan(argument: text))
        var options = DomainOptions()
        options.cacheSeconds = given.seconds
        let printed = try shown(options, "cache-time")
        #expect(TimeSpan(argument: printed)?.seconds == given.seconds)
    }
}
