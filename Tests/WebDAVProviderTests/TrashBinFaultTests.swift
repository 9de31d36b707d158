import FileProvider
import FileProviderTesting
import Foundation
import TestSupport
import Testing

/// Trash bins on bad days.
@Suite("trash bins of WebDAV servers that fail", .tags(.server), .serialized)
struct TrashBinFaultTests {
    /// The server is tried at the first change: from here on what that left in the bin has gone.
    private func settleTrial(_ remote: BinnedRemote, _ session: ProviderSession) async throws {
        try await session.delete(session.create(ProviderSession.template("other"), content: [1]).item)
        #expect(await eventually { (try? await remote.binned().count) == 1 })
    }

    @Test(
        "BIN-5: a lost answer to throwing away changes nothing: the next attempt finds it",
        arguments: ["lose", "refuse"])
    func lostThrowing(fault: String) async throws {
        try await BinnedRemote.run(attempts: 1) { remote, session, manager in
            try await remote.makeDirectory("d")
            try await remote.write(Array("one".utf8), to: "d/file")
            let file = try await session.find("d/file")
            try await settleTrial(remote, session)
            try await remote.fault(fault, "DELETE")
            #expect(await failureCode { _ = try await session.trash(file) } == .serverUnreachable)
            #expect(try await remote.listing(of: "d") == (fault == "lose" ? [] : ["file"]))
            let next = try await remote.session(manager)
            let trashed = try await next.trash(file)
            #expect(trashed.itemIdentifier == file.itemIdentifier)
            #expect(trashed.itemVersion == file.itemVersion)
            #expect(try await next.list(.trashContainer) == [trashed])
            #expect(try await next.fetch(file.itemIdentifier).bytes == Array("one".utf8))
            await next.provider.invalidate()
        }
    }

    @Test(
        "BIN-5: bringing back goes on where it was broken off, with nothing lost and nothing twice",
        arguments: ["lose", "refuse"], [1, 2])
    func lostRestoring(fault: String, at step: Int) async throws {
        try await BinnedRemote.run(attempts: 1) { remote, session, manager in
            try await remote.makeDirectory("from")
            try await remote.makeDirectory("to")
            try await remote.write(Array("one".utf8), to: "from/file")
            let to = try await session.find("to").itemIdentifier
            let file = try await session.find("from/file")
            let trashed = try await session.trash(file)
            // Another item has its name: the server restores it under a different one first.
            try await remote.write(Array("other".utf8), to: "from/file")
            // The first request takes it out of the bin, the second to where it is wanted.
            try await remote.fault(fault, step == 1 ? "MOVE" : "MOVE2")
            #expect(
                await failureCode { _ = try await session.restore(trashed, to: to, as: "wanted") } == .serverUnreachable
            )
            let next = try await remote.session(manager)
            let back = try await next.restore(trashed, to: to, as: "wanted", content: Array("two".utf8))
            #expect(back.itemIdentifier == file.itemIdentifier)
            #expect(try await remote.content(of: "to/wanted") == "two")
            #expect(try await remote.content(of: "from/file") == "other")
            #expect(try await remote.listing(of: "from") == ["file"])
            #expect(try await remote.listing(of: "to") == ["wanted"])
            #expect(try await next.list(.trashContainer).isEmpty)
            await next.provider.invalidate()
        }
    }

    @Test(
        "BIN-5: new content goes in whatever was lost, on the way into the trash and out of it",
        arguments: ["lose", "refuse"])
    func lostContent(fault: String) async throws {
        try await BinnedRemote.run(attempts: 1) { remote, session, manager in
            try await remote.makeDirectory("to")
            try await remote.write(Array("one".utf8), to: "file")
            let to = try await session.find("to").itemIdentifier
            let file = try await session.find("file")
            try await settleTrial(remote, session)
            let thrown = file.moved(to: .trashContainer)
            try await remote.fault(fault, "DELETE")
            let first = await failureCode { [thrown] in
                _ = try await session.modify(thrown, .parentItemIdentifier, content: Array("two".utf8))
            }
            #expect(first == .serverUnreachable)
            let trashed = try await session.modify(
                thrown, .parentItemIdentifier, content: Array("two".utf8), base: file.itemVersion
            ).item
            #expect(trashed.isTrashed)
            #expect(trashed.itemIdentifier == file.itemIdentifier)
            #expect(try await session.fetch(file.itemIdentifier).bytes == Array("two".utf8))
            // The item is back, and its new content is not, or its state is unknown.
            try await remote.fault(fault, "PUT")
            let second = await failureCode {
                _ = try await session.restore(trashed, to: to, as: "back", content: Array("three".utf8))
            }
            #expect(second == .serverUnreachable)
            #expect(try await remote.content(of: "to/back") == (fault == "lose" ? "three" : "two"))
            let next = try await remote.session(manager)
            let back = try await next.restore(trashed, to: to, as: "back", content: Array("three".utf8))
            #expect(back.itemIdentifier == file.itemIdentifier)
            #expect(try await remote.content(of: "to/back") == "three")
            #expect(try await next.list(.trashContainer).isEmpty)
            await next.provider.invalidate()
        }
    }

    @Test("BIN-5: nothing is brought back over anything, nor content over what others wrote") func collisions()
        async throws
    {
        try await BinnedRemote.run { remote, session, _ in
            try await remote.write(Array("one".utf8), to: "file")
            let file = try await session.find("file")
            let trashed = try await session.trash(file)
            try await remote.write(Array("other".utf8), to: "file")
            #expect(
                await failureCode { _ = try await session.restore(trashed, to: .rootContainer, as: "file") }
                    == .filenameCollision)
            #expect(try await remote.binnedNames() == ["file"])
            #expect(try await remote.content(of: "file") == "other")
            // What was based on something else is a conflict, and stays in the trash.
            var wrong = trashed
            (wrong.parentItemIdentifier, wrong.filename) = (.rootContainer, "free")
            let conflict = await failureCode { [wrong] in
                _ = try await session.modify(
                    wrong, [.parentItemIdentifier, .filename], content: Array("new".utf8),
                    base: ItemVersion(contentVersion: [1], metadataVersion: []))
            }
            #expect(conflict == .localVersionConflictingWithServer)
            #expect(try await remote.listing() == ["file"])
            // In the trash nothing is written: new content is another item there, and the old one stays.
            let written = try await session.modify(trashed, .contents, content: Array("new".utf8)).item
            #expect(written.isTrashed)
            #expect(written.itemIdentifier != trashed.itemIdentifier)
            #expect(try await session.fetch(written.itemIdentifier).bytes == Array("new".utf8))
            #expect(try await session.list(.trashContainer).count == 2)
            let back = try await session.restore(trashed, to: .rootContainer, as: "free")
            #expect(try await session.fetch(back.itemIdentifier).bytes == Array("one".utf8))
        }
    }

    @Test("BIN-6: a bin that is turned off deletes nothing; without one there is no trash") func turnedOff()
        async throws
    {
        try await BinnedRemote.run { remote, session, manager in
            try await remote.write([1], to: "file")
            let file = try await session.find("file")
            try await remote.fault("bin", "none")
            #expect(await failureCode { _ = try await session.trash(file) } == .cannotSynchronize)
            #expect(try await remote.listing() == ["file"])
            #expect(!session.provider.features.trash)
            #expect(manager.warnings.contains { $0.contains("turned its trash bin off") })
            #expect(await failureCode { _ = try await session.list(.trashContainer) } == .featureUnsupported)
            #expect(try await !session.find("file").capabilities.contains(.allowsTrashing))
            // Turned on again, it is found by who comes next.
            try await remote.fault("bin", "nextcloud")
            let provider = try await remote.makeProvider(for: manager)
            #expect(provider.features.trash)
            await provider.invalidate()
        }
    }

    @Test("BIN-6: what the bin does not take is said, and what is shared or mounted does not go there") func notTaken()
        async throws
    {
        try await BinnedRemote.run { remote, session, manager in
            try await remote.write([UInt8](repeating: 1, count: 100), to: "large")
            try await remote.write([1], to: "shared")
            let large = try await session.find("large")
            try await remote.fault("limit", "50")
            #expect(await failureCode { _ = try await session.trash(large) } == .cannotSynchronize)
            #expect(manager.warnings.contains { $0.contains("'large' for good") })
            // Offered again, it is refused, and leaves nothing behind that is seen.
            let offered = ProviderSession.template("large", in: .trashContainer)
            let refusal = await failureCode {
                _ = try await session.create(offered, content: [UInt8](repeating: 1, count: 100))
            }
            #expect(refusal == .cannotSynchronize)
            #expect(try await session.list().map(\.filename) == ["shared"])
            for letters in ["SRGDNVW", "MRGDNVW", "RGNVW"] {
                try await remote.fault("letters", letters)
                let shared = try await session.find("shared")
                #expect(!shared.capabilities.contains(.allowsTrashing), "\(letters)")
                #expect(await failureCode { _ = try await session.trash(shared) } == .cannotSynchronize)
            }
            #expect(try await remote.listing() == ["shared"])
        }
    }

    @Test("BIN-7: a bin that lists nonsense is not believed, and nothing is deleted by it") func nonsense() async throws
    {
        try await BinnedRemote.run { remote, session, manager in
            for name in ["good", "up", "slash", "long"] { try await remote.write([1], to: name) }
            let good = try await session.trash(session.find("good"))
            for name in ["up", "slash", "long"] { try await remote.delete(name) }
            try await remote.fault("odd", "names")
            #expect(try await session.list(.trashContainer) == [good])
            for text in ["'..'", "slash", "300 bytes"] {
                #expect(manager.warnings.contains { $0.contains(text) }, "'\(text)' is not among \(manager.warnings)")
            }
            let before = try await remote.binned()
            try await remote.fault("odd", "places")
            let listed = try await session.list(.trashContainer)
            #expect(listed.map(\.filename).sorted() == ["good", "long", "slash", "up"])
            for text in ["trash/..'", "trash/.'", "%2e%2e", "a%2Fb", "a%00b", "%FF", "deep/one", "elsewhere", "../x"] {
                #expect(manager.warnings.contains { $0.contains(text) }, "'\(text)' is not among \(manager.warnings)")
            }
            for item in listed where item.itemIdentifier != good.itemIdentifier { try await session.delete(item) }
            try await remote.fault("odd", "nothing")
            #expect(try await remote.binned() == before.filter { $0.hasPrefix("good") })
            try await remote.fault("odd", "half")
            #expect(await failureCode { _ = try await session.list(.trashContainer) } == .malformedResponse)
            try await remote.fault("odd", "identifiers")
            #expect(try await session.list(.trashContainer).isEmpty)
            #expect(manager.warnings.contains { $0.contains("does not say what it is") })
            #expect(try await remote.binned().count == 1)
            try await remote.fault("odd", "nothing")
            #expect(try await session.list(.trashContainer).contains { $0.itemIdentifier == good.itemIdentifier })
        }
    }

    @Test("BIN-8: an ownCloud's bin lists, restores and deletes, and refuses to be read") func ownCloud() async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await BinnedRemote(port: port, in: directory)
            try await remote.fault("bin", "owncloud")
            let session = try await remote.session()
            #expect(session.provider.features.trash)
            try await remote.makeDirectory("d")
            try await remote.write(Array("inner".utf8), to: "d/inner")
            try await remote.write(Array("one".utf8), to: "file")
            let (file, inner) = (try await session.find("file"), try await session.find("d/inner"))
            let trashed = try await session.trash(file)
            let folder = try await session.trash(session.find("d"))
            #expect(try await session.list(.trashContainer).map(\.filename).sorted() == ["d", "file"])
            #expect(try await session.list(folder.itemIdentifier).map(\.itemIdentifier) == [inner.itemIdentifier])
            #expect(try await session.item(inner.itemIdentifier).parentItemIdentifier == folder.itemIdentifier)
            #expect(await failureCode { _ = try await session.fetch(file.itemIdentifier) } == .fileReadNoPermission)
            try await remote.write(Array("other".utf8), to: "file")
            #expect(
                await failureCode { _ = try await session.restore(trashed, to: .rootContainer, as: "file") }
                    == .filenameCollision)
            let back = try await session.restore(trashed, to: .rootContainer, as: "wanted", content: Array("two".utf8))
            #expect(back.itemIdentifier == file.itemIdentifier)
            #expect(try await remote.content(of: "wanted") == "two")
            try await session.delete(folder, recursively: true)
            #expect(try await session.list(.trashContainer).isEmpty)
            await session.provider.invalidate()
        }
    }
}
