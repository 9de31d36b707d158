import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import TestSupport
import Testing

@testable import WebDAVProvider

/// As Nextcloud documents its trash bin, and as its source and ownCloud's say; none of them is here.
@Suite("trash bins of WebDAV servers", .tags(.server), .serialized)
struct TrashBinTests {
    @Test("BIN-1: conforms where the server has a trash bin") func conforms() async throws {
        try await IdentifyingRemote.run { port, directory in
            for check in ProviderConformance.Check.allCases {
                do {
                    try await ProviderConformance { try await BinnedRemote(port: port, in: directory) }.run(check)
                } catch {
                    Issue.record("\(check): \(error)")
                }
            }
        }
    }

    @Test("BIN-1: what is thrown away is in the server's bin, whole, and comes back to any place")
    func throwsAwayAndBringsBack() async throws {
        try await BinnedRemote.run { remote, session, manager in
            #expect(session.provider.features.trash)
            try await remote.makeDirectory("a")
            try await remote.makeDirectory("b")
            try await remote.write(Array("one".utf8), to: "a/file")
            try await remote.makeDirectory("a/sub")
            try await remote.write(Array("deep".utf8), to: "a/sub/deep")
            let file = try await session.find("a/file")
            let deep = try await session.find("a/sub/deep")
            let (a, b) = (try await session.find("a").itemIdentifier, try await session.find("b").itemIdentifier)
            let trashed = try await session.trash(file)
            // But for where it is, and since when, it is what it was.
            #expect(trashed.trashDate != nil)
            var expected = file.moved(to: .trashContainer)
            expected.trashDate = trashed.trashDate
            #expect(trashed == expected)
            #expect(try await remote.listing(of: "a") == ["sub"])
            #expect(try await remote.binnedNames() == ["file"])
            let sub = try await session.trash(session.find("a/sub"))
            #expect(try await remote.binnedNames().sorted() == ["file", "sub"])
            #expect(try await session.list(sub.itemIdentifier).map(\.itemIdentifier) == [deep.itemIdentifier])
            #expect(try await session.fetch(deep.itemIdentifier).bytes == Array("deep".utf8))
            #expect(try await session.fetch(file.itemIdentifier, range: 1..<3).bytes == Array("ne".utf8))
            #expect(try await session.item(file.itemIdentifier) == trashed)
            // Elsewhere than where the server puts it, with other content.
            let back = try await session.restore(trashed, to: b, as: "other", content: Array("two".utf8))
            #expect(back.itemIdentifier == file.itemIdentifier)
            #expect(try await remote.content(of: "b/other") == "two")
            #expect(try await remote.listing(of: "a").isEmpty)
            // Out of a directory that stays in the bin.
            #expect(try await session.restore(deep, to: b, as: "deep").itemIdentifier == deep.itemIdentifier)
            #expect(try await remote.content(of: "b/deep") == "deep")
            #expect(try await session.list(sub.itemIdentifier).isEmpty)
            // Where it was, which is gone itself.
            _ = try await session.trash(session.item(a))
            #expect(try await session.restore(sub, to: .rootContainer, as: "sub").itemIdentifier == sub.itemIdentifier)
            #expect(try await remote.listing().sorted() == ["b", "sub"])
            #expect(try await remote.binnedNames() == ["a"])
            #expect(manager.warnings.isEmpty)
        }
    }

    @Test("BIN-1: two of one name within a second are both kept, and so is a name that the bin has to cut")
    func names() async throws {
        try await BinnedRemote.run { remote, session, _ in
            let long = String(repeating: "ä", count: 120) + ".txt"
            for folder in ["a", "b", "c"] {
                try await remote.makeDirectory(folder)
                try await remote.write(Array(folder.utf8), to: "\(folder)/same")
                try await remote.write(Array(folder.utf8), to: "\(folder)/\(long)")
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for folder in ["a", "b"] {
                    for name in ["same", long] {
                        let item = try await session.find("\(folder)/\(name)")
                        group.addTask { _ = try await session.trash(item) }
                    }
                }
                try await group.waitForAll()
            }
            // Nor does what is deleted push anything out.
            try await session.delete(session.find("c/same"))
            try await session.delete(session.find("c/\(long)"))
            let trashed = try await session.list(.trashContainer)
            #expect(trashed.map(\.filename).sorted() == ["same", "same", long, long].sorted())
            var contents: [String] = []
            for item in trashed {
                contents.append(String(decoding: try await session.fetch(item.itemIdentifier).bytes, as: UTF8.self))
            }
            #expect(contents.sorted() == ["a", "a", "b", "b"])
            let folder = try await session.find("c").itemIdentifier
            for (number, item) in trashed.enumerated() {
                let back = try await session.restore(item, to: folder, as: "\(number)-" + item.filename.prefix(8))
                #expect(back.itemIdentifier == item.itemIdentifier)
            }
            #expect(try await remote.listing(of: "c").count == 4)
        }
    }

    @Test("BIN-2: what is deleted stays in the server's bin and is none of the mount's trash, also in the next daemon")
    func deletions() async throws {
        try await BinnedRemote.run { remote, session, manager in
            try await remote.write([1], to: "deleted")
            try await remote.write([2], to: "thrown")
            try await remote.write([3], to: "kept")
            let (deleted, thrown) = (try await session.find("deleted"), try await session.find("thrown"))
            try await session.delete(deleted)
            _ = try await session.trash(thrown)
            #expect(try await remote.binnedNames().sorted() == ["deleted", "thrown"])
            #expect(try await session.list(.trashContainer).map(\.filename) == ["thrown"])
            await #expect(throws: FileProviderError.self) { _ = try await session.item(deleted.itemIdentifier) }
            let next = try await remote.session(manager)
            let listed = try await next.list(.trashContainer)
            #expect(listed.map(\.filename) == ["thrown"])
            // It still shows which content that is.
            #expect(listed.first?.itemVersion == thrown.itemVersion)
            // Another client restores it and deletes it again: that is a change.
            let place = try #require(try await remote.binned().first { $0.hasPrefix("deleted") })
            try await remote.restore(place)
            #expect(try await next.find("deleted").itemIdentifier == deleted.itemIdentifier)
            try await Task.sleep(for: .milliseconds(1100))
            try await remote.delete("deleted")
            #expect(try await next.list(.trashContainer).map(\.filename).sorted() == ["deleted", "thrown"])
            // Deleted in the trash, it is gone for good.
            let item = try await next.item(thrown.itemIdentifier)
            try await next.delete(item)
            try await next.delete(item)
            #expect(try await remote.binnedNames() == ["deleted"])
            await next.provider.invalidate()
        }
    }

    @Test("BIN-3: what others throw away, bring back or delete for good is seen so") func others() async throws {
        try await BinnedRemote.run { remote, session, _ in
            try await remote.makeDirectory("d")
            try await remote.write(Array("one".utf8), to: "d/one")
            try await remote.write(Array("two".utf8), to: "two")
            let (one, directory) = (try await session.find("d/one"), try await session.find("d"))
            try await remote.delete("d/one")
            // It is still in the bin.
            let found = try await session.item(one.itemIdentifier)
            #expect(found.isTrashed)
            #expect(found.filename == "one")
            #expect(
                try await session.fetch(one.itemIdentifier, version: found.itemVersion.contentVersion).bytes
                    == Array("one".utf8))
            // It is unknown whether that is the content that was read before.
            await #expect(throws: FileProviderError.self) {
                _ = try await session.fetch(one.itemIdentifier, version: one.itemVersion.contentVersion)
            }
            try await remote.delete("d")
            #expect(try await session.list(.trashContainer).map(\.filename).sorted() == ["d", "one"])
            let places = try await remote.binned()
            try await remote.restore(try #require(places.first { $0.hasPrefix("d.") }))
            #expect(try await session.list(.trashContainer).map(\.filename) == ["one"])
            #expect(try await session.find("d").itemIdentifier == directory.itemIdentifier)
            try await remote.deleteFromBin(try #require(places.first { $0.hasPrefix("one") }))
            #expect(try await session.list(.trashContainer).isEmpty)
            await #expect(throws: FileProviderError.self) { _ = try await session.item(one.itemIdentifier) }
        }
    }

    @Test("TRASH-6: what others throw away has the date of the bin") func dates() async throws {
        try await BinnedRemote.run { remote, session, _ in
            let before = Int64(Date().timeIntervalSince1970)
            for name in ["mine", "theirs"] { try await remote.write(Array("one".utf8), to: name) }
            _ = try await session.trash(session.find("mine"))
            try await remote.delete("theirs")
            let items = try await session.list(.trashContainer)
            #expect(items.count == 2)
            for item in items {
                let date = try #require(item.trashDate)
                #expect((before..<before + 60).contains(date.seconds), "\(item.filename)")
            }
        }
    }

    @Test("BIN-1: directories in a bin that were not deleted are not in the trash; their deleted members are")
    func nested() async throws {
        try await BinnedRemote.run { remote, session, _ in
            try await remote.fault("bin", "nested")
            try await remote.makeDirectory("d.1")
            try await remote.makeDirectory("d.1/sub")
            try await remote.write(Array("one".utf8), to: "d.1/sub/one")
            try await remote.write(Array("two".utf8), to: "d.1/two")
            try await remote.write(Array("three".utf8), to: "three")
            let one = try await session.trash(session.find("d.1/sub/one"))
            let sub = try await session.trash(session.find("d.1/sub"))
            try await remote.delete("d.1/two")
            let three = try await session.trash(session.find("three"))
            #expect(try await session.list(.trashContainer).map(\.filename).sorted() == ["one", "sub", "three", "two"])
            #expect(try await session.fetch(one.itemIdentifier).bytes == Array("one".utf8))
            let back = try await session.restore(one, to: .rootContainer, as: "back")
            #expect(back.itemIdentifier == one.itemIdentifier)
            #expect(try await remote.content(of: "back") == "one")
            try await session.delete(three)
            try await session.delete(sub, recursively: true)
            #expect(try await session.list(.trashContainer).map(\.filename) == ["two"])
        }
    }

    @Test("BIN-9: a bin that leads into ever more directories is not listed for ever") func wide() async throws {
        try await BinnedRemote.run { remote, session, _ in
            try await remote.fault("bin", "nested")
            for name in ["a", "b", "c"] {
                try await remote.makeDirectory(name)
                try await remote.write([1], to: "\(name)/file")
                try await remote.delete("\(name)/file")
            }
            _ = try await session.list()
            let server = try #require(session.webDAV).server
            // The bin, the mounted folder in it, and the three.
            for (most, isListed) in [(10_000, true), (5, true), (4, false)] {
                var changed = server.trash
                changed.mostDirectories = most
                let trash = changed
                let failed = await failureCode { _ = try await trash.entries() }
                let expected: FileProviderError.Code? = isListed ? nil : .malformedResponse
                #expect(failed == expected, "\(most)")
            }
            let found = try await server.trash.entries()
            #expect(found.map(\.entry.name) == ["file", "file", "file"])
        }
    }

    @Test("BIN-4: a mount of one folder has in its trash what lay there, and brings that back whatever became of it")
    func folders() async throws {
        try await IdentifyingRemote.run { port, directory in
            let whole = try await BinnedRemote(port: port, in: directory, named: "top")
            try await whole.makeDirectory("part")
            try await whole.makeDirectory("part/deep")
            try await whole.write(Array("in".utf8), to: "part/deep/in")
            try await whole.write(Array("out".utf8), to: "out")
            let remote = try await BinnedRemote(port: port, in: directory, named: "top/part")
            let session = try await remote.session()
            let inside = try await session.find("deep/in")
            try await whole.delete("out")
            let trashed = try await session.trash(inside)
            #expect(try await session.list(.trashContainer).map(\.filename) == ["in"])
            // The server puts it outside of the mount then.
            try await session.delete(session.find("deep"), recursively: true)
            let back = try await session.restore(trashed, to: .rootContainer, as: "in")
            #expect(back.itemIdentifier == inside.itemIdentifier)
            #expect(try await remote.content(of: "in") == "in")
            #expect(try await whole.listing() == ["part"])
            await session.provider.invalidate()
        }
    }
}
