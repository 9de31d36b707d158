import Control
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// The folder that a removal keeps data in is filled and published without harm to what others have there.
@Suite struct KeptFolderTests {
    private let directory: TemporaryDirectory
    private var place: FilePath { directory["kept"] }

    init() throws { directory = try TemporaryDirectory() }

    private func fill(_ folder: KeptFolder, with text: String) throws {
        try folder.work.appending("files").makeDirectory()
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.work.string + "/files/file"))
        try Data("{}".utf8).write(to: URL(fileURLWithPath: folder.work.string + "/manifest.json"))
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: place.string).sorted() }
    }

    @Test("REMOVE-1: what is kept comes into the folder when all of it is there") func published() throws {
        defer { directory.remove() }
        let folder = try KeptFolder(at: place)
        try fill(folder, with: "a")
        #expect(try !names.contains("files"))
        try folder.publish()
        #expect(try names == ["files", "manifest.json"])
    }

    @Test("REMOVE-2: the check of a folder leaves nothing behind") func checked() throws {
        defer { directory.remove() }
        try KeptFolder.check(place)
        #expect(!FileManager.default.fileExists(atPath: place.string))
        try KeptFolder.check(place.appending("a/b"))
        #expect(!FileManager.default.fileExists(atPath: place.string))
        _ = try directory.makeDirectory("kept")
        try KeptFolder.check(place)
        #expect(try names.isEmpty)
    }

    @Test("REMOVE-2: a folder that holds anything is refused and left as it is, whatever the names in it")
    func notEmpty() throws {
        defer { directory.remove() }
        _ = try directory.makeDirectory("kept")
        let own = try directory.makeFile("kept/manifest.json.part", Array("mine".utf8))
        let error = #expect(throws: ControlError.self) { _ = try KeptFolder(at: place) }
        #expect(error?.message == "it is not empty")
        #expect(try own.contents() == Array("mine".utf8))
        #expect(try names == ["manifest.json.part"])
    }

    @Test("REMOVE-2: two removals that keep data in one folder: one has it, the other is refused") func two() throws {
        defer { directory.remove() }
        let first = try KeptFolder(at: place)
        let error = #expect(throws: ControlError.self) { _ = try KeptFolder(at: place) }
        #expect(error?.message == "another removal keeps its data there")
        try fill(first, with: "a")
        try first.publish()
        #expect(throws: ControlError.self) { _ = try KeptFolder(at: place) }
        #expect(try place.appending("files/file").contents() == Array("a".utf8))
    }

    @Test(
        "REMOVE-2: nothing is published beside what has come into the folder meanwhile",
        arguments: ["files", "manifest.json"])
    func occupied(_ name: String) throws {
        defer { directory.remove() }
        let folder = try KeptFolder(at: place)
        try fill(folder, with: "a")
        let own = try directory.makeFile("kept/\(name)", Array("mine".utf8))
        #expect(throws: ControlError.self) { try folder.publish() }
        folder.discard()
        #expect(try names == [name])
        #expect(try own.contents() == Array("mine".utf8))
    }

    @Test("REMOVE-1: a removal that was killed before it had locked its directory hinders no other") func killedEarly()
        throws
    {
        defer { directory.remove() }
        _ = try directory.makeDirectory("kept/.yonder-keeping-\(UUID().uuidString)")
        let folder = try KeptFolder(at: place)
        #expect(try names == [folder.work.lastComponent?.string])
    }

    @Test("REMOVE-2: what only has the name of such a directory is the user's") func likeOurs() throws {
        defer { directory.remove() }
        for name in [".yonder-keeping-notes", ".yonder-keeping-\(UUID().uuidString)"] {
            _ = try directory.makeDirectory("kept/\(name)")
            _ = try directory.makeFile("kept/\(name)/files", Array("mine".utf8))
            #expect(throws: ControlError.self) { _ = try KeptFolder(at: place) }
            #expect(try names == [name])
            try FileManager.default.removeItem(atPath: place.appending(name).string)
        }
    }

    @Test("REMOVE-2: nothing is kept in the state directory but in its folder for that") func stateDirectory() throws {
        defer { directory.remove() }
        let store = try DomainStore(in: directory["state"])
        for name in ["state", "state/domains/d/x", "state/staging", "state/removed/x", "state/kept"] {
            #expect(!store.mayKeep(in: directory[name]), "\(name)")
        }
        #expect(store.mayKeep(in: directory["state/kept/d"]) && store.mayKeep(in: directory["other"]))
        try directory["state/domains/d"].makeDirectory()
        try directory["link"].makeLink(to: "state/domains/d")
        #expect(!store.mayKeep(in: directory["link"]) && !store.mayKeep(in: directory["other/../state/domains/d"]))
    }

    @Test(
        "REMOVE-2: a removal that was decided on, and cut short, is finished at the next start",
        arguments: [nil, "files", "manifest.json"])
    func finishedLater(after last: String?) throws {
        defer { directory.remove() }
        let store = try DomainStore(in: directory["state"])
        let domain = store.directory(of: "d")
        try domain.makeDirectory()
        do {
            let folder = try KeptFolder(at: place)
            try fill(folder, with: "a")
            try store.decideToForget("d", keptIn: folder)
            if last != nil {
                try folder.work.appending("files").move(to: place.appending("files"))
                if last == "manifest.json" {
                    try folder.work.appending("manifest.json").move(to: place.appending("manifest.json"))
                }
            }
        }
        let leftovers = store.settle { Issue.record("\($0)") }
        #expect(try names == ["files", "manifest.json"])
        #expect(!FileManager.default.fileExists(atPath: domain.string))
        // The replica is deleted later.
        #expect(leftovers.count == 1)
        for left in leftovers {
            #expect(FileManager.default.fileExists(atPath: left.string))
            store.delete(left) { _ in }
            #expect(!FileManager.default.fileExists(atPath: left.string))
        }
    }

    @Test("REMOVE-2: a domain that was mounted again after its removal had failed is not removed at the next start")
    func mountedAgain() throws {
        defer { directory.remove() }
        let store = try DomainStore(in: directory["state"])
        let domain = store.directory(of: "d")
        try domain.makeDirectory()
        let folder = try KeptFolder(at: place)
        try fill(folder, with: "a")
        try store.decideToForget("d", keptIn: folder)
        try folder.publish()
        store.withdrawDecision(of: "d")
        let leftovers = store.settle { Issue.record("\($0)") }
        #expect(leftovers.isEmpty && FileManager.default.fileExists(atPath: domain.string))
    }

    @Test("REMOVE-1: what an interrupted removal has left in the folder goes with the next") func interrupted() throws {
        defer { directory.remove() }
        do {
            let folder = try KeptFolder(at: place)
            try fill(folder, with: "a")
        }
        let folder = try KeptFolder(at: place)
        try fill(folder, with: "b")
        try folder.publish()
        #expect(try names == ["files", "manifest.json"])
        #expect(try place.appending("files/file").contents() == Array("b".utf8))
    }
}
