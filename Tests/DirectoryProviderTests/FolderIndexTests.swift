import FileProvider
import Foundation
import Testing

@testable import DirectoryProvider

/// Items that are found by a walk of the source.
@Suite struct FolderIndexTests {
    /// A walk that takes so long that its result is used throughout a test.
    private func slowWalk(_ found: [(file: String, place: FolderIndex.Place)]) -> FolderIndex.Places {
        Thread.sleep(forTimeInterval: 0.1)
        var places = FolderIndex.Places()
        for (file, place) in found { places.add(place, of: file) }
        return places
    }

    @Test("a reported change is found although the last walk was before it")
    func changesAfterTheWalk() {
        let index = FolderIndex()
        var walks = 0
        func paths(of file: String) -> [[String]] {
            index.paths(of: ItemIdentifier(file)) {
                walks += 1
                return slowWalk([("f", (FolderIndex.root, "f")), ("d", (FolderIndex.root, "d"))])
            }
        }
        #expect(paths(of: "f") == [["f"]])
        #expect(paths(of: "new") == [])
        index.note(ItemIdentifier("f"), named: "y", in: ItemIdentifier("d"))
        index.note(ItemIdentifier("new"), named: "n", in: .rootContainer)
        #expect(paths(of: "f") == [["d", "y"], ["f"]])
        #expect(paths(of: "new") == [["n"]])
        // What was in a directory that moved is below it.
        index.note(ItemIdentifier("d"), named: "e", in: .rootContainer)
        #expect(paths(of: "f").first == ["e", "y"])
        #expect(walks == 1)
    }

    @Test("a change that is reported twice is one place")
    func twice() {
        let index = FolderIndex()
        _ = index.paths(of: ItemIdentifier("f")) { slowWalk([]) }
        for _ in 0..<2 { index.note(ItemIdentifier("f"), named: "y", in: .rootContainer) }
        #expect(index.paths(of: ItemIdentifier("f")) { slowWalk([]) } == [["y"]])
    }
}
