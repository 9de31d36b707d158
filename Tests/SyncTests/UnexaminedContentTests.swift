import FileProvider
import FileProviderTesting
import Foundation
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Content files that cannot be examined.
    @Suite struct UnexaminedContentTests {
        @Test("SEND-5: a content file that is gone keeps no other write from being noted, and is said to be")
        func otherWrites() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine async throws in
                var numbers: [InodeNumber] = []
                for name in ["a", "b"] {
                    _ = try await machine.read(name)
                    let number = try await machine.number(name)
                    try await machine.beginWriting(number)
                    machine.open.insert(number)
                    numbers.append(number)
                }
                // They are looked at in the order of their numbers.
                numbers.sort { $0.rawValue < $1.rawValue }
                let (gone, written) = (numbers[0], numbers[1])
                let path = machine.replica.directory.appending("contents").appending(String(gone.rawValue))
                try FileManager.default.removeItem(atPath: path.string)
                try machine.put("written", into: written)
                try machine.engine.noteWrittenFiles()
                let item = try machine.replica.database.item(ofInode: written)
                #expect(item?.changedFields.contains(.contents) == true)
                #expect(
                    try await eventually {
                        try machine.replica.database.failure(of: gone)?.message.contains("cannot be examined") == true
                    })
                #expect(try machine.replica.database.item(ofInode: gone)?.changedFields == [])
            }
        }

        @Test("SEND-5: what can be sent is planned although the content of a file cannot be examined")
        func otherChanges() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine async throws in
                let number = try await machine.open("a")
                try await machine.rename("b", to: "c")
                let row = try await machine.item("c").id
                // The files in it fail with ENOTDIR.
                let contents = machine.replica.directory.appending("contents").string
                try FileManager.default.moveItem(atPath: contents, toPath: contents + "-aside")
                try Data().write(to: URL(fileURLWithPath: contents))
                let planned = Result { try machine.replica.database.filesBeingWritten() }
                let operations = try? await machine.operations()
                try machine.engine.noteWrittenFiles()
                try FileManager.default.removeItem(atPath: contents)
                try FileManager.default.moveItem(atPath: contents + "-aside", toPath: contents)
                #expect(try planned.get() == [number])
                #expect(operations?.contains(.modification(row: row)) == true)
                try await machine.close(number)
                try await machine.settle()
            }
        }
    }
}
