import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("WebDAV servers", .tags(.server), .serialized)
struct ServerTests {
    @Test("DAV-1: conforms on every server that is installed", arguments: DAVServer.Kind.installed)
    func conforms(on kind: DAVServer.Kind) async throws {
        let server = try await DAVServer.start(kind)
        for check in ProviderConformance.Check.allCases {
            do {
                try await ProviderConformance { try ServedFolder(server) }.run(check)
                if check == .namesAreKept { #expect(!kind.refusesSomeNames) }
            } catch {
                if check == .namesAreKept, kind.refusesSomeNames { continue }
                Issue.record("\(kind), \(check): \(error)")
            }
        }
        await server.stop()
    }

    @Test("DAV-2: what a server does with conditions and tags is found out", arguments: DAVServer.Kind.installed)
    func capabilities(of kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            let made = try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
            #expect(folder.names == ["file"])
            let provider = try #require(session.provider as? PathAddressedProvider)
            let remote = try #require(provider.remote as? WebDAVRemote)
            let capabilities = try #require(remote.server.capabilityStore.capabilities)
            #expect(capabilities.refusesOverwriting)
            let controls: ServerCapabilities.NameFate =
                switch kind {
                case .apache, .nginx, .sabre, .reporting, .reportingMembers, .xandikos: .kept
                case .wsgidav: .sent
                case .rclone, .lighttpd: .lost
                }
            for part in ServerCapabilities.OddPart.allCases {
                let fate: ServerCapabilities.NameFate =
                    switch part {
                    case .controlCharacters: controls
                    case .question, .semicolon: kind == .wsgidav ? .sent : .kept
                    case .hash, .percent: .kept
                    }
                #expect(capabilities.oddNames[part] == fate, "\(part)")
            }
            #expect(capabilities.listsHiddenNames == (kind != .nginx))
            #expect(capabilities.movesConditionally == (kind == .apache))
            // lighttpd's have the number in them under which the file system keeps the file, and not all give new ones.
            if kind != .lighttpd { #expect(capabilities.tagsFollowContent == (kind == .apache || kind == .rclone)) }
            #expect((capabilities.deletions == .tagged) == (kind == .apache || kind == .lighttpd))
            #expect(capabilities.showsOnlyWhole == (kind != .wsgidav && kind != .rclone))
            #expect(capabilities.refusesReplacing == (kind != .nginx && kind != .rclone))
            #expect(capabilities.takesAnyLength)
            #expect(provider.remarks.isEmpty == (kind == .apache), "\(provider.remarks)")
            // The next instance knows it already.
            let again = try #require(try folder.makePathProvider(for: session.manager).remote as? WebDAVRemote)
            #expect(again.server.capabilityStore.capabilities == capabilities)
            await again.close()
            let stored = try await session.modify(made.item, .contents, content: [4])
            #expect(stored.item.itemIdentifier == made.item.itemIdentifier)
        }
    }

    @Test(
        "DAV-9: what others write in the moment of an upload is not written over",
        .enabled(if: DAVServer.Kind.apache.program != nil))
    func conditionsInTheProtocol() async throws {
        try await ServedFolder.run(on: .apache) { folder, session async throws in
            try await folder.write(Array("base".utf8), to: "file")
            let base = try await session.find("file")
            let remote = try #require(session.webDAV)
            let tag = try await remote.entry(at: RemotePath(["file"])).tag
            try await folder.write(Array("theirs".utf8), to: "file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath(["file"]), kind: .file, if: .unchanged(tag: tag))
            }
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.write([1], to: RemotePath(["file"]), if: .unchanged(tag: tag))
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data("theirs".utf8))
            #expect(base.documentSize == 4)
        }
    }

    @Test(
        "DAV-28: below a directory with a name that is cut short in a move, no other file is replaced",
        arguments: DAVServer.Kind.installed, ["q?x=1", "q;x", "q#x"])
    func oddDirectories(on kind: DAVServer.Kind, name: String) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            try await folder.write(Array("other".utf8), to: "q")
            try await folder.makeDirectory(name)
            try await folder.write(Array("known".utf8), to: name + "/in")
            // The first write of all: how the server treats names is found out with it.
            let file = try await session.find(name + "/in")
            let changed = try await session.modify(file, .contents, content: Array("changed".utf8))
            let directory = file.parentItemIdentifier
            let made = try await session.create(ProviderSession.template("new", in: directory), content: [1])
            #expect(changed.item.documentSize == 7 && made.item.documentSize == 1)
            func content(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: folder[path])) }
            #expect(try content("q") == Data("other".utf8))
            #expect(try content(name + "/in") == Data("changed".utf8))
            #expect(try content(name + "/new") == Data([1]))
            #expect(folder.names.sorted() == ["q", name])
        }
    }

    @Test("DAV-10: an upload that breaks off leaves nothing", arguments: DAVServer.Kind.installed)
    func brokenUploads(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            struct Broken: Error {}
            _ = try await session.create(ProviderSession.template("whole"), content: [1])
            let content = try TestContent([UInt8](repeating: 7, count: 3 << 20)) { throw Broken() }
            await #expect(throws: Broken.self) {
                _ = try await session.create(ProviderSession.template("new"), source: content.source)
            }
            let whole = try await session.find("whole")
            await #expect(throws: Broken.self) {
                _ = try await session.modify(whole, .contents, source: content.source)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["whole"])) == Data([1]))
            let isClean = await eventually(within: .seconds(15)) { folder.names == ["whole"] }
            #expect(isClean, "\(folder.names)")
        }
    }

    @Test(
        "DAV-11: what is new and small goes to its place at once where the server shows only what is whole",
        .enabled(if: DAVServer.Kind.apache.program != nil))
    func atOnce() async throws {
        try await ServedFolder.run(on: .apache) { folder, session async throws in
            let remote = try #require(session.webDAV)
            for size in [0, 1, 1000, 300_000] {
                let bytes = [UInt8](repeating: 7, count: size)
                let made = try await session.create(ProviderSession.template("file of \(size)"), content: bytes)
                // The version is the one that a listing shows.
                #expect(try await session.find("file of \(size)").itemVersion == made.item.itemVersion)
                #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file of \(size)"])) == Data(bytes))
            }
            // What others made meanwhile is not written over.
            try await folder.write(Array("theirs".utf8), to: "taken")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.write([1], to: RemotePath(["taken"]), if: .absent)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["taken"])) == Data("theirs".utf8))
            // What is written meanwhile does not go.
            struct Written: Error {}
            await #expect(throws: Written.self) {
                try await remote.write([1, 2], to: RemotePath(["written"]), if: .absent, confirm: { throw Written() })
            }
            #expect(!folder.names.contains("written"))
        }
    }

    @Test(
        "DAV-11: a small new file with a long name is moved to its place",
        .enabled(if: DAVServer.Kind.lighttpd.program != nil))
    func longNames() async throws {
        try await ServedFolder.run(on: .lighttpd) { folder, session async throws in
            for count in [200, 240, 255] {
                let name = String(repeating: "n", count: count)
                let made = try await session.create(ProviderSession.template(name), content: [1]).item
                #expect(try Data(contentsOf: URL(fileURLWithPath: folder[name])) == Data([1]))
                let changed = try await session.modify(made, .contents, content: [2, 3]).item
                #expect(try Data(contentsOf: URL(fileURLWithPath: folder[name])) == Data([2, 3]))
                try await session.delete(changed)
            }
        }
    }

    @Test(
        "PATH-5: another content of the same length within the second is seen in the end",
        arguments: DAVServer.Kind.installed)
    func sameSecond(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            try folder.write(Array("one".utf8), to: "file", at: nil)
            let first = try await session.find("file")
            let version = first.itemVersion.contentVersion
            _ = try await session.fetch(first.itemIdentifier, version: version)
            try folder.write(Array("two".utf8), to: "file", at: nil)
            try await Task.sleep(for: .milliseconds(2500))
            let second = try await session.find("file")
            #expect(second.itemIdentifier == first.itemIdentifier)
            #expect(second.itemVersion.contentVersion != version)
            let bytes = try await session.fetch(
                second.itemIdentifier, version: second.itemVersion.contentVersion
            ).bytes
            #expect(bytes == Array("two".utf8))
        }
    }

    @Test(
        "CONFLICT-1: content for a name that a directory has got is a collision at once",
        arguments: DAVServer.Kind.installed)
    func directoryInTheWay(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            let file = try await session.create(ProviderSession.template("name"), content: [1]).item
            try await folder.delete("name")
            try await folder.makeDirectory("name")
            let error = await #expect(throws: FileProviderError.self) {
                try await session.modify(file, .contents, content: [2, 2])
            }
            #expect(error?.code == .noSuchItem && error?.itemIdentifier == file.itemIdentifier)
            let collision = await #expect(throws: FileProviderError.self) {
                try await session.create(ProviderSession.template("name"), content: [3])
            }
            #expect(collision?.code == .filenameCollision)
        }
    }

    @Test(
        "DAV-1: a directory that another client replaces by a file is gone, and its parent can be listed",
        arguments: DAVServer.Kind.installed)
    func replacedDirectories(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            for path in ["a", "a/deep"] { try await folder.makeDirectory(path) }
            for path in ["a/b", "a/deep/c"] { try await folder.write(Array(path.utf8), to: path) }
            let known = [try await session.find("a"), try await session.find("a/deep"), try await session.find("a/b")]
            _ = try await session.find("a/deep/c")
            try await folder.rename("a/b", to: "moved")
            try await folder.delete("a")
            try await folder.write(Array("file".utf8), to: "a")
            for item in known.prefix(2) {
                let error = await #expect(throws: FileProviderError.self) {
                    try await session.list(item.itemIdentifier)
                }
                #expect(error?.code == .noSuchItem, "\(item.filename): \(String(describing: error))")
            }
            let now = try await session.list().map { [$0.filename, $0.kind == .file ? "file" : "other"] }
            #expect(Set(now) == [["a", "file"], ["moved", "file"]])
        }
    }

    @Test(
        "DAV-16: dates and modes are kept where the server keeps properties, for other machines too",
        arguments: DAVServer.Kind.installed)
    func attributes(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            var template = ProviderSession.template("script")
            template.contentModificationDate = FileTimestamp(seconds: 981_173_106, nanoseconds: 123_456_789)
            template.permissions = 0o755
            let fields: ItemFields = [.contentModificationDate, .permissions]
            let made = try await session.create(template, content: [1, 2], fields: fields)
            let provider = try #require(session.provider as? PathAddressedProvider)
            let remote = try #require(provider.remote as? WebDAVRemote)
            let keeps = try #require(remote.server.capabilityStore.capabilities).keepsAttributes
            #expect(keeps == (kind == .apache || kind == .lighttpd))
            #expect(provider.remarks.contains { $0.contains("keeps no properties") } == !keeps)
            guard keeps else { return #expect(made.stillPending == fields) }
            #expect(made.stillPending == [])
            #expect(made.item.contentModificationDate == template.contentModificationDate)
            #expect(made.item.permissions == 0o755)

            // Another machine sees them, and new content from here leaves the mode.
            let others = TestManager(
                domain: folder.domain, stateDirectory: try folder.server.directory.makeDirectory("other"))
            let other = try folder.makePathProvider(for: others)
            let there = try await other.remote.entry(at: RemotePath(["script"]))
            #expect(there.attributes.permissions == 0o755)
            #expect(there.attributes.contentModificationDate == template.contentModificationDate)
            await other.invalidate()
            let written = try await session.modify(made.item, .contents, content: [3])
            #expect(written.item.permissions == 0o755)
            var changed = written.item
            changed.permissions = 0o640
            let set = try await session.modify(changed, .permissions)
            #expect(set.stillPending == [])
            #expect(set.item.itemVersion.contentVersion == written.item.itemVersion.contentVersion)
            #expect(try await session.find("script").permissions == 0o640)
            let renamed = set.item.renamed("renamed")
            #expect(try await session.modify(renamed, .filename).item.permissions == 0o640)
            #expect(try await session.find("renamed").permissions == 0o640)

            // They are of the content that they were set for.
            try await folder.write([4, 5, 6], to: "renamed")
            let theirs = try await session.find("renamed")
            #expect(theirs.permissions == nil)
            #expect((theirs.contentModificationDate?.seconds ?? 0) < 1_100_000_000)
        }
    }

    @Test("DAV-16: what is written now with a usual mode costs no request more", arguments: DAVServer.Kind.installed)
    func usualAttributes(on kind: DAVServer.Kind) async throws {
        try await ServedFolder.run(on: kind) { _, session async throws in
            var template = ProviderSession.template("file")
            template.contentModificationDate = FileTimestamp(seconds: Int64(Date().timeIntervalSince1970) - 20)
            template.permissions = 0o644
            let fields: ItemFields = [.contentModificationDate, .permissions]
            let made = try await session.create(template, content: [1, 2], fields: fields)
            #expect(made.stillPending == fields)
            #expect(try await session.find("file").permissions == nil)
            let provider = try #require(session.provider as? PathAddressedProvider)
            #expect((provider.remote as? WebDAVRemote)?.server.capabilityStore.capabilities?.hasAttributes == false)
        }
    }

    @Test("MOUNT-6: says how much room there is", .enabled(if: DAVServer.Kind.wsgidav.program != nil))
    func quota() async throws {
        try await ServedFolder.run(on: .wsgidav) { folder, session async throws in
            let room = try #require(try await session.provider.quota())
            let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder[""])
            let size = try #require((attributes[.systemSize] as? NSNumber)?.int64Value)
            #expect(room.free > 0)
            #expect(try #require(room.total) <= size)
            #expect(try await session.provider.quota()?.total != nil)
        }
    }

    @Test("DAV-15: a deep tree is deleted", .enabled(if: DAVServer.Kind.apache.program != nil))
    func deepTrees() async throws {
        try await ServedFolder.run(on: .apache) { folder, session async throws in
            var path = "deep"
            try await folder.makeDirectory(path)
            for number in 0..<70 {
                path += "/\(number)"
                try await folder.makeDirectory(path)
            }
            try await folder.write([1], to: path + "/file")
            try await session.delete(try await session.find("deep"), recursively: true)
            #expect(folder.names.isEmpty)
        }
    }
}

extension DAVServer.Kind {
    /// They take no control characters.
    fileprivate var refusesSomeNames: Bool { self == .rclone || self == .lighttpd }
}
