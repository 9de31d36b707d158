import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneSentFileTests {
    private let path = RemotePath(["file"])

    /// Looks up what was uploaded as if it had just been.
    private func find(
        _ text: String, datedAt seconds: TimeInterval, _ folder: RcloneFolder, _ remote: RcloneRemote
    ) async throws -> RemoteEntry {
        let copy = folder.directory["remote"].appending("copy").string
        try Data(text.utf8).write(to: URL(fileURLWithPath: copy))
        let date = Date(timeIntervalSince1970: seconds)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: copy)
        return try await remote.present(copy, sentTo: path, size: Int64(text.utf8.count))
    }

    @Test("RCLONE-2: another client's content in the place of a direct upload is told from it by the checksum")
    func checksums() async throws {
        // An object store in rclone's memory.
        try await RcloneFolder.withRemote(source: "rclone::memory:bucket") { folder, remote in
            let date = FileTimestamp(seconds: 1_500_000_000)
            let made = try await withContent(Array("their".utf8)) {
                try await remote.write(
                    $0, to: path, attributes: RemoteAttributes(contentModificationDate: date), if: .absent)
            }
            #expect(made.isTagStrong)
            #expect(try await find("their", datedAt: 7, folder, remote).tag == made.tag)
            await #expect(throws: RemoteConditionFailure.self) {
                _ = try await find("yours", datedAt: 1_500_000_000, folder, remote)
            }
        }
    }

    /// Notes that a byte has come.
    private struct NoticingSink: ContentSink {
        let sink: ComparingSink
        let hasBegun: Gate

        func write(_ bytes: RawSpan, at offset: Int64) throws {
            hasBegun.open()
            try sink.write(bytes, at: offset)
        }

        func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
            hasBegun.open()
            try sink.write(from: descriptor, at: offset, count: count)
        }
    }

    @Test("RCLONE-4: a file that is compared while rclone is killed is the same one", .timeLimit(.minutes(2)))
    func killedDuringAComparison() async throws {
        // About four seconds for the file.
        try await RcloneFolder.withRemote(program: "exec \"$RCLONE\" \"$@\" --bwlimit 512k") { folder, remote in
            let bytes = (0..<2 << 20).map { UInt8(truncatingIfNeeded: $0 >> 8) }
            try await folder.write(bytes, to: "file")
            let hasBegun = Gate()
            let killing = Task {
                try await hasBegun.pass()
                return try await RcloneSafetyTests.killPrograms(of: folder)
            }
            let isSame = try await withContent(bytes) { source in
                try await source.equals { sink in
                    let noticing = NoticingSink(sink: sink, hasBegun: hasBegun)
                    _ = try await remote.read(path, tag: nil, range: nil, into: noticing)
                }
            }
            #expect(isSame)
            #expect(try await killing.value > 0)
        }
    }

    @Test("RCLONE-2: an upload whose place an interrupted move has emptied is moved there, and not removed")
    func emptiedPlaces() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            let hidden = RemotePath([HiddenName.make()])
            let name = try #require(hidden.name)
            try await folder.write(Array("new".utf8), to: name)
            #expect(try await remote.finishReplacing(path, by: hidden))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == ["file"])
            #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "new")
            // The file there has not been deleted.
            try await folder.write(Array("newer".utf8), to: name)
            #expect(try await !remote.finishReplacing(path, by: hidden))
            #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "new")
        }
    }

    @Test("RCLONE-2: a large file is not read where its date can be asked for")
    func storedDates() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            let size = 2 << 20
            var features = RcloneFeatures()
            features.slowPrecision = 1_000_000_000
            let copy = folder.directory["remote"].appending("copy").string
            try await folder.write([UInt8](repeating: 1, count: size), to: "file")
            for (seconds, byte, isSent) in [(7, 2, true), (8, 2, false), (8, 1, true)]
                as [(TimeInterval, UInt8, Bool)]
            {
                try Data([UInt8](repeating: byte, count: size)).write(to: URL(fileURLWithPath: copy))
                for (file, seconds) in [(copy, seconds), (folder["file"], 7)] {
                    let date = Date(timeIntervalSince1970: seconds)
                    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file)
                }
                let there = try await remote.stored(path, size: Int64(size))
                // The bytes would tell that it is another one: only the date was compared.
                #expect(try await remote.isSent(copy, there, at: path, size: Int64(size), features) == isSent)
            }
        }
    }

    @Test("RCLONE-2: without checksums it is told by the date, or by the bytes")
    func datesAndBytes() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            let date = FileTimestamp(seconds: 1_500_000_000)
            let made = try await withContent(Array("their".utf8)) {
                try await remote.write(
                    $0, to: path, attributes: RemoteAttributes(contentModificationDate: date), if: .absent)
            }
            #expect(!made.isTagStrong)
            for seconds in [1_500_000_000, 7] as [TimeInterval] {
                #expect(try await find("their", datedAt: seconds, folder, remote).tag == made.tag)
            }
            await #expect(throws: RemoteConditionFailure.self) {
                _ = try await find("yours", datedAt: 7, folder, remote)
            }
        }
    }
}
