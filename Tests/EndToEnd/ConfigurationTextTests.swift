import Foundation
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

@Suite struct ConfigurationTextTests {
    @Test(
        "CMD-12: a configuration file that is not text in UTF-8 is a mistake, also where the byte is in a comment",
        arguments: [[0x80], [0xE9], [0x00]] as [[UInt8]])
    func otherBytes(_ bytes: [UInt8]) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let copy = directory["copy"].string
        let file = try directory.makeFile("config.toml", Array("[ignore]\nnames = [\"*.own\"]\n".utf8)).string
        #expect(Configuration(at: file, keepingCopyAt: copy).complaints == [])
        let comment = Array("# A comment ".utf8) + bytes
        _ = try directory.makeFile("config.toml", comment + Array("\n[ignore]\nnames = [\"*.other\"]\n".utf8))
        let configuration = Configuration(at: file, keepingCopyAt: copy)
        #expect(
            configuration.complaints
                == ["'\(file)': what it said before applies, and nothing new: it is not text in UTF-8"])
        #expect(configuration.ignoredNames.pattern(for: "a.own") == "*.own")
    }
}
