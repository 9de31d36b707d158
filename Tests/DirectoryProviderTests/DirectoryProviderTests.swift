import FileNames
import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

@Suite struct DirectoryProviderTests {
    @Test(arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try FolderRemote() }.run(check)
    }

    @Test func attributesAreTheFilesOwn() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2, 3], to: "file")
            _ = try await Command.run("chmod", "640", remote["file"])
            _ = try await Command.run("touch", "-d", "2001-02-03 04:05:06.123456789 UTC", remote["file"])
            _ = try await Command.run("ln", "-s", "../not/there", remote["link"])
            let file = try await session.find("file")
            #expect(file.permissions == 0o640)
            #expect(file.documentSize == 3)
            #expect(file.contentModificationDate == FileTimestamp(seconds: 981_173_106, nanoseconds: 123_456_789))
            #expect(file.capabilities.contains(.allowsWriting))
            let link = try await session.find("link")
            #expect(link.kind == .symbolicLink)
            #expect(link.symlinkTargetPath == "../not/there")
        }
    }

    @Test func aFileReplacedByAnotherIsAnotherItem() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("old".utf8), to: "file")
            let anchor = try await session.anchor()
            let old = try await session.find("file")
            try await remote.write(Array("newer".utf8), to: "temporary")
            _ = try await Command.run("mv", "-f", remote["temporary"], remote["file"])
            let changes = try await session.changes(from: anchor, until: "the replacement") {
                $0.deleted.contains(old.itemIdentifier)
                    && $0.updated.contains { $0.filename == "file" && $0.documentSize == 5 }
            }
            let new = try #require(changes.updated.last { $0.filename == "file" })
            #expect(new.itemIdentifier != old.itemIdentifier)
            #expect(await failureCode { _ = try await session.item(old.itemIdentifier) } == .noSuchItem)
            #expect(try await session.fetch(new.itemIdentifier).bytes == Array("newer".utf8))
        }
    }

    @Test func movedDirectoryKeepsItsDescendants() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("a")
            try await remote.makeDirectory("b")
            try await remote.makeDirectory("a/moving")
            try await remote.write(Array("inner".utf8), to: "a/moving/inner")
            let anchor = try await session.anchor()
            let inner = try await session.find("a/moving/inner")
            let directory = try await session.find("a/moving").itemIdentifier
            let b = try await session.find("b").itemIdentifier
            try await session.list(b)
            try await remote.rename("a/moving", to: "b/moved")
            let changes = try await session.changes(from: anchor, until: "the move") {
                $0.updated.contains { $0.itemIdentifier == directory && $0.parentItemIdentifier == b }
            }
            #expect(!changes.deleted.contains(directory))
            #expect(try await session.fetch(inner.itemIdentifier).bytes == Array("inner".utf8))
            // The watch went along: what happens in it is told under its new place.
            try await remote.write([1], to: "b/moved/new")
            _ = try await session.changes(from: changes.anchor, until: "a file in the moved directory") {
                $0.updated.contains { $0.filename == "new" && $0.parentItemIdentifier == directory }
            }
        }
    }

    @Test func hardLinksAreTwoItemsOfOneContent() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("shared".utf8), to: "one")
            try FileManager.default.linkItem(atPath: remote["one"], toPath: remote["two"])
            let items = try await session.list()
            #expect(Set(items.map(\.filename)) == ["one", "two"])
            #expect(Set(items.map(\.itemIdentifier)).count == 2)
            for item in items {
                #expect(try await session.fetch(item.itemIdentifier).bytes == Array("shared".utf8))
                #expect(try await session.item(item.itemIdentifier) == item)
            }
            // One content: what is written through one name is there under both, and the version of both changes.
            let written = try await Command.shell("printf ' and more' >>\"$1\"", remote["one"])
            try #require(written.status == 0)
            let changed = try await session.list()
            #expect(Set(changed.map(\.itemIdentifier)) == Set(items.map(\.itemIdentifier)))
            for item in changed {
                #expect(try await session.fetch(item.itemIdentifier).bytes == Array("shared and more".utf8))
                let before = items.first { $0.itemIdentifier == item.itemIdentifier }
                #expect(before?.itemVersion.contentVersion != item.itemVersion.contentVersion)
            }
            #expect(Set(changed.map(\.itemVersion.contentVersion)).count == 1)
            try await remote.delete("one")
            #expect(try await session.list().map(\.filename) == ["two"])
            #expect(try await session.fetch(session.find("two").itemIdentifier).bytes == Array("shared and more".utf8))
        }
    }

    @Test func namesThatAreNotUTF8AreListed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "good")
            let made = try await Command.shell("touch \"$1/$(printf 'bad\\377')\"", remote.root.string)
            try #require(made.status == 0)
            let bad = FileNameText.text(of: Array("bad".utf8) + [0xFF])
            #expect(Set(try await session.list().map(\.filename)) == ["good", bad])
            let anchor = try await session.anchor()
            _ = try await Command.shell("touch \"$1/$(printf 'worse\\377')\"", remote.root.string)
            let worse = FileNameText.text(of: Array("worse".utf8) + [0xFF])
            _ = try await session.changes(from: anchor, until: "the new file") { changes in
                changes.updated.contains { $0.filename == worse }
            }
        }
    }

    @Test func specialFilesAreNotListed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "file")
            let made = try await Command.run("mkfifo", remote["fifo"])
            try #require(made.status == 0)
            #expect(try await session.list().map(\.filename) == ["file"])
        }
    }

    @Test func missingRootIsServerUnreachable() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            try await remote.write([1, 2], to: "directory/file")
            let file = try await session.find("directory/file").itemIdentifier
            let directory = try await session.find("directory").itemIdentifier
            let away = remote.directory["away"].string
            try FileManager.default.moveItem(atPath: remote.root.string, toPath: away)
            func allAreUnreachable(_ when: String) async {
                #expect(
                    await failureCode { _ = try await session.item(.rootContainer) } == .serverUnreachable, "\(when)")
                #expect(await failureCode { _ = try await session.item(file) } == .serverUnreachable, "\(when)")
                #expect(await failureCode { _ = try await session.list() } == .serverUnreachable, "\(when)")
                #expect(await failureCode { _ = try await session.list(directory) } == .serverUnreachable, "\(when)")
                #expect(await failureCode { _ = try await session.fetch(file) } == .serverUnreachable, "\(when)")
            }
            await allAreUnreachable("nothing is there")
            // A mount point whose disk is gone.
            try FileManager.default.createDirectory(atPath: remote.root.string, withIntermediateDirectories: false)
            await allAreUnreachable("an empty folder is there")
            try FileManager.default.removeItem(atPath: remote.root.string)
            try FileManager.default.moveItem(atPath: away, toPath: remote.root.string)
            #expect(try await session.fetch(file).bytes == [1, 2])
        }
    }

    @Test func missingRootFailsConstruction() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "/"), stateDirectory: directory.path)
        let code = await failureCode { _ = try DirectoryProvider(root: directory["missing"], manager: manager) }
        #expect(code == .serverUnreachable)
    }

    @Test func aLinkInPlaceOfADirectoryLeadsNowhere() async throws {
        try await FolderRemote.run { remote, session in
            let known = try await remote.replaceDirectoryByLink(in: session)
            let (directory, file) = (known.directory.itemIdentifier, known.file.itemIdentifier)
            #expect(await failureCode { _ = try await session.list(directory) } == .noSuchItem)
            #expect(await failureCode { _ = try await session.item(file) } == .noSuchItem)
            #expect(await failureCode { _ = try await session.fetch(file) } == .noSuchItem)
            // Neither when the link leads to the directory itself.
            try FileManager.default.removeItem(atPath: remote["directory"])
            try FileManager.default.createSymbolicLink(
                atPath: remote["directory"], withDestinationPath: remote.directory["elsewhere"].string)
            #expect(await failureCode { _ = try await session.fetch(file) } == .noSuchItem)
        }
    }

    @Test func aLinkInPlaceOfAFileIsNotFollowed() async throws {
        try await FolderRemote.run { remote, session in
            _ = try remote.directory.makeFile("secret", Array("secret".utf8))
            try await remote.write(Array("public".utf8), to: "file")
            let file = try await session.find("file").itemIdentifier
            try await remote.delete("file")
            try FileManager.default.createSymbolicLink(
                atPath: remote["file"], withDestinationPath: remote.directory["secret"].string)
            #expect(await failureCode { _ = try await session.fetch(file) } == .noSuchItem)
        }
    }

    @Test(arguments: ["append", "truncate", "rewrite"])
    func fetchOfAChangingFileThrowsVersionNoLongerAvailable(how: String) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([UInt8](repeating: 7, count: 3 << 20), to: "file")
            let file = try await session.find("file")
            let path = remote["file"]
            let sink = CollectingSink {
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                defer { try? handle.close() }
                if how == "append" {
                    try handle.seekToEnd()
                    try handle.write(contentsOf: [1])
                } else if how == "rewrite" {
                    let descriptor = FileDescriptor(rawValue: handle.fileDescriptor)
                    let modified = try FileStatus(of: descriptor).modified
                    try handle.write(contentsOf: [1])
                    try descriptor.setModified(modified)
                } else {
                    try handle.truncate(atOffset: 10)
                }
            }
            let code = await failureCode {
                _ = try await session.provider.fetchContents(
                    for: file.itemIdentifier, version: file.itemVersion.contentVersion, range: nil,
                    request: session.request, into: sink)
            }
            #expect(code == .versionNoLongerAvailable)
        }
    }

    private final class WriteCounter: Sendable {
        private let count = Atomic<Int>(0)

        func next() -> Int { count.add(1, ordering: .relaxed).newValue }
    }

    @Test(
        "READ-1: what a folder has given before a fetch fails is confirmed, up to a change of the file",
        arguments: [true, false])
    func interruptedFetch(isChanged: Bool) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([UInt8](repeating: 7, count: 3 << 20), to: "file")
            let file = try await session.find("file")
            let path = remote.root.appending("file")
            let writes = WriteCounter()
            let sink = CollectingSink {
                guard writes.next() == 3 else { return }
                guard isChanged else { throw Errno.ioError }
                let writer = try FileDescriptor.open(path, .writeOnly)
                try writer.closeAfter { _ = try writer.writeAll([1]) }
            }
            let code = await failureCode {
                _ = try await session.provider.fetchContents(
                    for: file.itemIdentifier, version: file.itemVersion.contentVersion, range: nil,
                    request: session.request, into: sink)
            }
            #expect((code == .versionNoLongerAvailable) == isChanged && code != nil)
            #expect(sink.confirmed.ranges == [0..<2 << 20])
            #expect(!sink.hasWrongConfirmation)
        }
    }

    @Test("READ-1: a write just after a fetch makes another version, also one of equal size")
    func writtenJustAfterAFetch() async throws {
        try await FolderRemote.run { remote, session in
            for round in UInt8(0)..<50 {
                try await remote.write([round, 1], to: "file")
                let file = try await session.find("file")
                let (bytes, fetched) = try await session.fetch(file.itemIdentifier)
                let writer = try FileDescriptor.open(remote.root.appending("file"), .writeOnly)
                try writer.closeAfter { _ = try writer.writeAll([round, 2]) }
                #expect(bytes == [round, 1])
                let written = try await session.item(file.itemIdentifier)
                #expect(written.itemVersion.contentVersion != fetched.itemVersion.contentVersion)
            }
        }
    }

    @Test func fiveThousandFilesComeInPages() async throws {
        try await FolderRemote.run { remote, session in
            let made = try await Command.shell("cd \"$1\" && seq -f file-%.0f 5000 | xargs touch", remote.root.string)
            try #require(made.status == 0)
            #expect(try await session.list(pageSize: 1000).count == 5000)
            let enumerator = try session.provider.enumerator(for: .rootContainer, request: session.request)
            let first = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 1000)
            #expect(first.items.count == 1000)
            // Pages go on where they were, whatever is deleted and made meanwhile.
            try await remote.delete(first.items[999].filename)
            try await remote.write([1], to: "aaa")
            let next = try #require(first.nextPage)
            let second = try await enumerator.enumerateItems(startingAt: next, suggestedPageSize: 1000)
            #expect(second.items.count == 1000)
            #expect(Set(first.items.map(\.itemIdentifier)).isDisjoint(with: second.items.map(\.itemIdentifier)))
        }
    }

    @Test func firstPageComesBeforeTheRestOfTheDirectoryIsRead() async throws {
        try await FolderRemote.run { remote, session in
            let made = try await Command.shell("cd \"$1\" && seq -f file-%.0f 5000 | xargs touch", remote.root.string)
            try #require(made.status == 0)
            let enumerator = try session.provider.enumerator(for: .rootContainer, request: session.request)
            let first = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 100)
            #expect(first.items.count == 100)
            let next = try #require(first.nextPage)
            // The token is how many names have been read: those of the page, and one that says that there are more.
            #expect(String(decoding: next.rawValue, as: UTF8.self) == "101")
            _ = try await enumerator.enumerateItems(startingAt: next, suggestedPageSize: 100)
            // The stream cannot go back: the listing begins again.
            let code = await failureCode {
                _ = try await enumerator.enumerateItems(startingAt: next, suggestedPageSize: 100)
            }
            #expect(code == .pageExpired)
            var names: Set<String> = []
            var page: FileProviderPage? = .initial
            while let position = page {
                let answer = try await enumerator.enumerateItems(startingAt: position, suggestedPageSize: 700)
                for item in answer.items { #expect(names.insert(item.filename).inserted) }
                page = answer.nextPage
            }
            #expect(names.count == 5000)
        }
    }

    @Test func unreadableFileThrowsFileReadNoPermission() async throws {
        guard !FUSEAvailability.isRoot else { return }
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "file")
            let file = try await session.find("file").itemIdentifier
            _ = try await Command.run("chmod", "000", remote["file"])
            #expect(await failureCode { _ = try await session.fetch(file) } == .fileReadNoPermission)
        }
    }

    @Test func invalidatedProviderDoesNotSignal() async throws {
        try await FolderRemote.run { remote, session in
            try await session.list()
            try await remote.write([1], to: "one")
            #expect(await eventually { session.manager.signals > 0 })
            await session.provider.invalidate()
            #expect(try await session.find("one").documentSize == 1)
        }
    }
}
