import FileProvider
import FileProviderPaths
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.timing)) struct ObjectNotesTests {
    @Test("HTTP-8: what is noted of one object costs no more in a large directory than in a small one")
    func cost() throws {
        let store = ReportingStore.temporary
        let notes = ObjectNotes<Int>("notes", in: store)
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
        // Another process reads all of it, without what was removed.
        notes.note((0..<5).map { ("top/directory/file \($0)", nil) })
        let again = ObjectNotes<Int>("notes", in: store)
        #expect(again["top/directory/file 4"] == nil)
        #expect(again["top/directory/file 20499"] == 20_499)
    }

    @Test("notes are those of an object's own bytes, directory and namespace, and are gone when they were removed")
    func keys() throws {
        let store = ReportingStore.temporary
        let notes = ObjectNotes<Int>("notes", in: store)
        let keys = ["", "a", "a/", "a/b", "a/b/", "a/b/c", "a/\u{0}/c", "a/\u{e9}", "a/e\u{301}", "a%2Fb", "a/\u{0}"]
        notes.note(keys.enumerated().map { ($1, $0) })
        for notes in [notes, ObjectNotes<Int>("notes", in: store)] {
            for (number, key) in keys.enumerated() { #expect(notes[key] == number, "\(key.debugDescription)") }
            #expect(notes["b"] == nil)
        }
        #expect(ObjectNotes<Int>("other", in: store)["a"] == nil)
        for round in 0..<200 { notes.note([("a/one", round)]) }
        #expect(ObjectNotes<Int>("notes", in: store)["a/one"] == 199)
        notes.note(keys.map { ($0, nil) } + [("a/one", nil), ("never", nil)])
        #expect(try store.store.list(in: ProviderStoreNamespace<Int>("notes")).isEmpty)
    }

    @Test("notes of more directories than are held in memory are read again") func manyDirectories() throws {
        let notes = ObjectNotes<Int>("notes", in: .temporary)
        for number in 0..<250 { notes.note([("\(number)/file", number)]) }
        for number in 0..<250 { #expect(notes["\(number)/file"] == number) }
    }
}
