import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Files and new contents that are not where the interrupted write has recorded them.
extension InterruptedWriteTests {
    @Test("FOLDER-4: an interrupted write is completed under another name of the file", arguments: [true, false])
    func renamedMeanwhile(isReplaced: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            try remote.link("one", as: "two")
            try FileManager.default.moveItem(atPath: remote["one"], toPath: remote["three"])
            if isReplaced { try await remote.write(Array("another file".utf8), to: "one") }
            try await restart(remote, session)
            #expect(remote.text("two") == Self.new && remote.text("three") == Self.new)
            #expect(remote.text("one") == (isReplaced ? "another file" : ""))
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: an interrupted write is completed after another program has renamed the directory")
    func directoryRenamedMeanwhile() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
            try FileManager.default.moveItem(atPath: remote["directory"], toPath: remote["renamed"])
            try await restart(remote, session)
            #expect(remote.text("renamed/one") == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote["renamed/" + copy]))
        }
    }

    @Test("FOLDER-4: the new content of a file that is not found, or the loss of the content, is reported")
    func notFound() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            try FileManager.default.removeItem(atPath: remote["one"])
            try await restart(remote, session)
            #expect(remote.text(copy) == Self.new)
            #expect(session.manager.warnings.filter { $0.contains(copy) }.count == 1)
            try FileManager.default.removeItem(atPath: remote[copy])
            try await restart(remote, session)
            #expect(session.manager.warnings.filter { $0.contains("was removed from the source") }.count == 1)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test(
        "FOLDER-4: the new content of a file whose directory was moved to a trash, or is being deleted, is not taken for removed",
        arguments: [".Trash-1000/files/directory", HiddenName.prefix + "1"])
    func trashedMeanwhile(trashed: String) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
            if trashed.contains("/") {
                try await remote.makeDirectory(".Trash-1000")
                try await remote.makeDirectory(".Trash-1000/files")
            }
            try FileManager.default.moveItem(atPath: remote["directory"], toPath: remote[trashed])
            try await restart(remote, session)
            #expect(remote.text(trashed + "/" + copy) == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).count == 1)
            #expect(session.manager.warnings.filter { $0.contains(copy) }.count == 1)
            try FileManager.default.moveItem(atPath: remote[trashed], toPath: remote["directory"])
            try await restart(remote, session)
            #expect(remote.text("directory/one") == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test(
        "FOLDER-4: the new content of a file is not taken for removed where the folder has too many names to be searched",
        arguments: [true, false])
    func notSearched(isDirectoryMoved: Bool) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            try await remote.makeDirectory("elsewhere")
            let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
            try remote.link("directory/one", as: "elsewhere/two")
            try FileManager.default.removeItem(atPath: remote["directory/one"])
            try await remote.write(Array("another file".utf8), to: "directory/one")
            let place = isDirectoryMoved ? "elsewhere/directory" : "directory"
            if isDirectoryMoved {
                try FileManager.default.moveItem(atPath: remote["directory"], toPath: remote[place])
            }
            let folder = try #require(session.provider as? DirectoryProvider).folder
            folder.finishWritingInPlace(mostNames: 1)
            #expect(remote.text("elsewhere/two") == "the content")
            #expect(remote.text(place + "/" + copy) == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).count == 1)
            #expect(session.manager.warnings.filter { $0.contains(copy) }.count == 1)
            try await restart(remote, session)
            #expect(remote.text("elsewhere/two") == Self.new)
            #expect(remote.text(place + "/one") == "another file")
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: an interrupted write is completed with a copy that the search of the folder does not reach")
    func copyWhereItWasWritten() async throws {
        try await FolderRemote.run { remote, session in
            try await interruptAndMoveOut(remote, session)
            let folder = try #require(session.provider as? DirectoryProvider).folder
            folder.finishWritingInPlace(mostNames: 1)
            #expect(remote.text("two") == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }
}
