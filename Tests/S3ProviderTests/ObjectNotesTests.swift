import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.timing)) struct ObjectNotesTests {
    @Test("S282: what is noted of one object costs no more in a large directory than in a small one")
    func cost() throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let notes = ObjectNotes<Int>(directory: scratch["notes"])
        func note(_ range: Range<Int>) -> Duration {
            let start = ContinuousClock.now
            for number in range { notes.note([("top/directory/file \(number)", number)]) }
            return .now - start
        }
        _ = note(0..<100)
        let small = note(100..<600)
        notes.note((600..<20_000).map { ("top/directory/file \($0)", $0) })
        let large = note(20_000..<20_500)
        #expect(large < small * 10 + .milliseconds(200), "\(small), then \(large)")
        // Another process knows all of it, and what was forgotten is.
        notes.note((0..<5).map { ("top/directory/file \($0)", nil) })
        let again = ObjectNotes<Int>(directory: scratch["notes"])
        #expect(again["top/directory/file 4"] == nil)
        #expect(again["top/directory/file 20499"] == 20_499)
    }

    @Test("a file is made anew when most of it is of the past, and goes with the last note") func rewriting() throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let folder = scratch["notes"]
        let notes = ObjectNotes<Int>(directory: folder)
        for round in 0..<2000 { notes.note([("a/one", round), ("a/ü", round)]) }
        func sizes() throws -> [Int] {
            try FileManager.default.contentsOfDirectory(atPath: folder.string).map {
                try Data(contentsOf: URL(fileURLWithPath: folder.appending($0).string)).count
            }
        }
        let found = try sizes()
        #expect(found.count == 1 && (found.first ?? 0) < 20_000, "\(found)")
        #expect(ObjectNotes<Int>(directory: folder)["a/ü"] == 1999)
        notes.note([("a/one", nil), ("a/ü", nil)])
        #expect(try sizes() == [])
        notes.note([("a/one", 3)])
        #expect(ObjectNotes<Int>(directory: folder)["a/one"] == 3)
    }

    @Test("what an earlier version wrote, or a process that was killed while it wrote, is read and goes on")
    func otherFiles() throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let folder = scratch["notes"]
        ObjectNotes<Int>(directory: folder).note([("a/one", 1)])
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.string).first)
        let file = URL(fileURLWithPath: folder.appending(name).string)
        let cutOff = "{\"name\":\"one\",\"note\":7}\n{\"name\":\"two\",\"note\":8}\n{\"name\":\"th"
        for text in [#"{"one":7,"two":8}"#, cutOff] {
            try Data(text.utf8).write(to: file)
            let notes = ObjectNotes<Int>(directory: folder)
            #expect(notes["a/one"] == 7 && notes["a/two"] == 8 && notes["a/th"] == nil)
            notes.note([("a/three", 9)])
            let again = ObjectNotes<Int>(directory: folder)
            #expect(again["a/one"] == 7 && again["a/two"] == 8 && again["a/three"] == 9)
        }
    }
}
