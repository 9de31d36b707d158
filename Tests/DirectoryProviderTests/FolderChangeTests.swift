import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// The change feed of a folder.
@Suite struct FolderChangeTests {
    @Test("CHANGE-1: what has changed is reported at once, also while a program changes another file all the time")
    func busyWriter() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["busy", "quiet"] {
                try await remote.makeDirectory(directory)
                try await remote.write([1], to: "\(directory)/file")
                let item = try await session.find(directory)
                let enumerator = try session.provider.enumerator(for: item.itemIdentifier, request: session.request)
                _ = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            }
            let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
            var anchor = try #require(try await feed.currentSyncAnchor())
            let writer = Task {
                while !Task.isCancelled {
                    try await remote.write([2], to: "busy/file")
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            defer { writer.cancel() }
            try await Task.sleep(for: .milliseconds(30))
            for number in 0..<10 {
                try await remote.write([3], to: "quiet/new\(number)")
                let changes = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
                #expect(changes.updated.contains { $0.filename == "new\(number)" })
                anchor = changes.anchor
            }
        }
    }

    @Test("CHANGE-1: directories that cannot be watched are compared also while others change all the time")
    func busyBesideUnwatched() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "file")
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 86_400)
            let watcher = try FolderWatcher(folder: folder, pause: .milliseconds(200))
            defer { watcher.stop() }
            let root = try FileDescriptor.openDirectory(remote.root)
            defer { try? root.close() }
            watcher.watch(root, as: .rootContainer)
            let anchor = folder.log.anchor
            let writer = Task {
                while !Task.isCancelled {
                    try await remote.write([2], to: "file")
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            defer { writer.cancel() }
            // What is no directory cannot be watched.
            let file = try root.openFile(named: "file")
            defer { try? file.close() }
            watcher.watch(file, as: "file")
            #expect(await eventually { folder.log.places(since: anchor, limit: 1) == nil })
        }
    }

    @Test("FOLDER-2: a move is reported once more where the first answer was not taken in")
    func answerThatWasNotTakenIn() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["listed", "other"] { try await remote.makeDirectory(directory) }
            try await remote.write([1], to: "listed/file")
            let file = try await session.find("listed/file")
            let other = try await session.find("other")
            let anchor = try await session.anchor()
            try await Command.run("mv", remote["listed/file"], remote["other/file"]).expectSuccess()
            let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
            for _ in 0..<2 {
                let changes = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
                let item = changes.updated.first { $0.itemIdentifier == file.itemIdentifier }
                #expect(item?.parentItemIdentifier == other.itemIdentifier)
                #expect(!changes.deleted.contains(file.itemIdentifier))
            }
        }
    }

    @Test("FOLDER-2: a call that was cancelled while it examines a move leaves the move to the next call")
    func cancelledCall() throws {
        let log = ChangeLog()
        let place = ChangeLog.Place("file", in: "d")
        log.noteMovedAway(place)
        let cancellation = BlockingCalls.Cancellation()
        cancellation.request()
        #expect(throws: CancellationError.self) { try log.takeMovedAway(place, checking: cancellation.check) }
        #expect(log.hasMovedAway)
        #expect(try log.takeMovedAway(place, checking: BlockingCalls.Cancellation().check))
    }

    /// Makes a directory that is known, and moves it out of the folder when "new" has been made in it. The system holds the removal, and
    /// still has the directory.
    private func moveAside(
        _ remote: FolderRemote, _ session: ProviderSession
    ) async throws -> (directory: FileProviderItem, feed: any FileProviderEnumerator, gone: ChangeBatch) {
        try await remote.makeDirectory("d")
        try await remote.write([1], to: "d/old")
        _ = try await session.find("d/old")
        let directory = try await session.find("d")
        let anchor = try await session.anchor()
        try await Command.shell("cd \"$1\" && echo new > d/new && mv d ../aside", remote.root.string).expectSuccess()
        let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
        return (directory, feed, try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000))
    }

    @Test("CHANGE-1: what was made in a directory is reported when that is back that was not found")
    func directoryThatIsAway() async throws {
        try await FolderRemote.run { remote, session in
            let (directory, feed, gone) = try await moveAside(remote, session)
            #expect(gone.deleted == [directory.itemIdentifier])
            try await Command.shell("cd \"$1\" && mv ../aside d", remote.root.string).expectSuccess()
            // The second time as if the first answer had not been taken in.
            for _ in 0..<2 {
                let changes = try await feed.enumerateChanges(from: gone.anchor, suggestedBatchSize: 1000)
                #expect(
                    changes.updated.contains {
                        $0.filename == "new" && $0.parentItemIdentifier == directory.itemIdentifier
                    })
            }
        }
    }

    @Test("CHANGE-1: a change in a directory that was not found is examined again after each answer that was not given")
    func answerThatWasNotGiven() throws {
        let log = ChangeLog()
        let place = ChangeLog.Place("new", in: "d")
        let anchor = log.anchor
        log.append([place])
        let first = try #require(log.places(since: anchor, limit: 10))
        #expect(first.places == [place])
        #expect(try log.settle(first, lost: [place], checking: {}) == first.anchor)
        // The call that examines it ends before it can keep it.
        for _ in 0..<3 {
            let again = try #require(log.places(since: first.anchor, limit: 10))
            #expect(again.places == [place])
            #expect(again.isAll)
        }
        let found = try #require(log.places(since: first.anchor, limit: 10))
        let cancelled: () throws -> Void = { throw CancellationError() }
        #expect(throws: CancellationError.self) { try log.settle(found, lost: [], checking: cancelled) }
        let later = ChangeLog.Place("later", in: "d")
        log.append([later])
        let anchorOfFound = try log.settle(found, lost: [], checking: {})
        let again = try #require(log.places(since: first.anchor, limit: 10))
        #expect(again.places == [place, later])
        let last = try #require(log.places(since: anchorOfFound, limit: 10))
        #expect(last.places == [later])
    }

    @Test("CHANGE-1: changes in directories that are not found make no round endless, and move no anchor again")
    func roundWithUnfound() throws {
        let log = ChangeLog()
        var anchor = log.anchor
        let places = (0..<10).map { ChangeLog.Place("\($0)", in: "d") }
        log.append(places)
        for round in 0..<3 {
            var examined: Set<ChangeLog.Place> = []
            var isAll = false
            let before = anchor
            for _ in 0..<10 where !isAll {
                let next = try #require(log.places(since: anchor, limit: 2))
                examined.formUnion(next.places)
                anchor = try log.settle(next, lost: Set(next.places), checking: {})
                isAll = next.isAll
            }
            #expect((anchor == before) == (round > 0), "round \(round)")
            #expect(isAll, "round \(round)")
            #expect(examined == Set(places))
        }
    }

    @Test("a directory that was not found costs no walk of the folder for each move of another file")
    func walksForUnfound() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["d", "a", "b"] { try await remote.makeDirectory(directory) }
            for file in ["d/old", "a/file", "b/other"] { try await remote.write([1], to: file) }
            for file in ["d/old", "b/other"] { _ = try await session.find(file) }
            let file = try await session.find("a/file")
            let other = try await session.find("b")
            let anchor = try await session.anchor()
            let away = try await Command.shell("cd \"$1\" && echo new > d/new && mv d ../aside", remote.root.string)
            #expect(away.status == 0, "\(away.errors)")
            let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
            let gone = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
            let index = try Self.indexAfterASlowWalk(of: session)
            try await Command.shell("cd \"$1\" && mv a/file b/file", remote.root.string).expectSuccess()
            let changes = try await feed.enumerateChanges(from: gone.anchor, suggestedBatchSize: 1000)
            let item = changes.updated.first { $0.itemIdentifier == file.itemIdentifier }
            #expect(item?.parentItemIdentifier == other.itemIdentifier)
            var walks = 0
            _ = index.paths(of: "none") {
                walks += 1
                return FolderIndex.Places()
            }
            #expect(walks == 0)
        }
    }

    /// The folder's index after a walk whose result is used for ten seconds.
    private static func indexAfterASlowWalk(of session: ProviderSession) throws -> FolderIndex {
        let index = try #require(session.provider as? DirectoryProvider).folder.index
        index.expire()
        _ = index.paths(of: "none") {
            Thread.sleep(forTimeInterval: 0.5)
            return FolderIndex.Places()
        }
        return index
    }

    @Test("CHANGE-1: what was made in a directory is reported when that is back where nothing is watched")
    func backInAnUnwatchedDirectory() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("never")
            let (directory, feed, gone) = try await moveAside(remote, session)
            _ = try Self.indexAfterASlowWalk(of: session)
            try await Command.shell("cd \"$1\" && mv ../aside d && mv d never/d", remote.root.string).expectSuccess()
            let changes = try await feed.enumerateChanges(from: gone.anchor, suggestedBatchSize: 1000)
            #expect(
                changes.updated.contains {
                    $0.filename == "new" && $0.parentItemIdentifier == directory.itemIdentifier
                })
        }
    }

    @Test(
        "CHANGE-1: a file system below the folder that is unmounted has everything compared",
        .enabled("only root can mount") { FUSEAvailability.isRoot })
    func unmountedBelow() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("disk")
            try await mounting(remote["disk"]) {
                try await remote.write([1], to: "disk/file")
                let disk = try await session.find("disk")
                let enumerator = try session.provider.enumerator(for: disk.itemIdentifier, request: session.request)
                _ = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
                let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
                let anchor = try #require(try await feed.currentSyncAnchor())
                _ = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
                try #require(try await Command.run("umount", remote["disk"]).status == 0)
                #expect(
                    await failureCode { _ = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000) }
                        == .syncAnchorExpired)
            }
        }
    }

    private func mounting(_ path: String, _ body: () async throws -> Void) async throws {
        try #require(try await Command.run("mount", "-t", "tmpfs", "none", path).status == 0)
        try await withCleanUp({ _ = try await Command.run("umount", "-q", "-l", path) }) { try await body() }
    }
}
