import FileProvider
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Another folder in the place of the source.
@Suite struct SourceIdentityTests {
    private func replaceSource(_ remote: FolderRemote, with kind: String) throws -> String {
        let away = remote.directory["away"].string
        let other = remote.directory["other"].string
        let files = FileManager.default
        try files.moveItem(atPath: remote.root.string, toPath: away)
        try files.createDirectory(atPath: other, withIntermediateDirectories: false)
        try Data("other".utf8).write(to: URL(fileURLWithPath: other + "/file"))
        switch kind {
        case "a symbolic link": try files.createSymbolicLink(atPath: remote.root.string, withDestinationPath: other)
        case "a symbolic link to the folder itself":
            try files.createSymbolicLink(atPath: remote.root.string, withDestinationPath: away)
        default: try files.copyItem(atPath: other, toPath: remote.root.string)
        }
        return away
    }

    private func putBack(_ remote: FolderRemote, from away: String) throws {
        try FileManager.default.removeItem(atPath: remote.root.string)
        try FileManager.default.moveItem(atPath: away, toPath: remote.root.string)
    }

    @Test(
        "issue 14, 1.9: a replacement of the source is neither read nor written, and the restored source works again",
        arguments: ["a symbolic link", "a symbolic link to the folder itself", "another folder"])
    func aReplacedSourceIsRefused(kind: String) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("mine".utf8), to: "file")
            let file = try await session.find("file")
            let away = try replaceSource(remote, with: kind)
            let template = ProviderSession.template("new", in: .rootContainer)
            for (what, error) in [
                ("item", await failure { _ = try await session.item(file.itemIdentifier) }),
                ("list", await failure { _ = try await session.list() }),
                ("fetch", await failure { _ = try await session.fetch(file.itemIdentifier) }),
                ("create", await failure { _ = try await session.create(template, content: [1]) }),
                ("modify", await failure { _ = try await session.modify(file, .contents, content: [1]) }),
                ("delete", await failure { try await session.delete(file) }),
                ("quota", await failure { _ = try await session.provider.quota() }),
            ] {
                #expect(error?.code == .serverUnreachable, "\(what)")
                #expect(error?.message.contains("replaced") == true, "\(what): \(error?.message ?? "no error")")
            }
            let other = remote.directory["other"].string
            #expect(try FileManager.default.contentsOfDirectory(atPath: other) == ["file"])
            #expect(try String(contentsOfFile: other + "/file", encoding: .utf8) == "other")
            #expect(try FileManager.default.contentsOfDirectory(atPath: away) == ["file"])
            // Neither by a provider that is made now, as after a restart of the daemon.
            let next = try await remote.makeProvider(for: session.manager)
            let again = ProviderSession(provider: next, manager: session.manager)
            #expect(await failure { _ = try await again.list() }?.code == .serverUnreachable)
            await next.invalidate()
            try putBack(remote, from: away)
            #expect(try await session.fetch(file.itemIdentifier).bytes == Array("mine".utf8))
            #expect(try await session.find("file").itemIdentifier == file.itemIdentifier)
        }
    }

    @Test("another folder is accepted as the source when no items of the old one are known")
    func anotherSourceIsAcceptedWhenNoItemsAreKnown()
        async throws
    {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("mine".utf8), to: "file")
            let file = try await session.find("file")
            _ = try replaceSource(remote, with: "another folder")
            #expect(await failure { _ = try await session.list() }?.code == .serverUnreachable)
            // As a reimport of the root does.
            session.manager.forget(file.itemIdentifier)
            #expect(try await session.list().map(\.filename) == ["file"])
            #expect(try await session.fetch(session.find("file").itemIdentifier).bytes == Array("other".utf8))
            // It is kept: a provider that is made now knows that one.
            let next = try await remote.makeProvider(for: session.manager)
            let again = ProviderSession(provider: next, manager: session.manager)
            #expect(try await again.list().map(\.filename) == ["file"])
            await next.invalidate()
        }
    }

    @Test("FOLDER-1: a symbolic link is not accepted as the source, also when no items of the old one are known")
    func aLinkIsNeverAccepted() async throws {
        for kind in ["a symbolic link", "a symbolic link to the folder itself"] {
            try await FolderRemote.run { remote, session in
                try await remote.write(Array("mine".utf8), to: "file")
                let file = try await session.find("file")
                let away = try replaceSource(remote, with: kind)
                // As a reimport of the root does.
                session.manager.forget(file.itemIdentifier)
                let error = await failure { _ = try await session.list() }
                #expect(error?.code == .serverUnreachable, "\(kind)")
                #expect(error?.message.contains("by a symbolic link") == true, "\(error?.message ?? "no error")")
                let template = ProviderSession.template("new", in: .rootContainer)
                #expect(
                    await failure { _ = try await session.create(template, content: [1]) }?.code == .serverUnreachable)
                #expect(try FileManager.default.contentsOfDirectory(atPath: away) == ["file"])
                try putBack(remote, from: away)
                #expect(try await session.list().map(\.filename) == ["file"])
            }
        }
    }

    @Test("a source that is named by a symbolic link is resolved once") func aLinkIsResolvedOnce() async throws {
        try await FolderRemote.run { remote, session in
            let link = remote.directory["link"]
            let state = try remote.directory.makeDirectory("other state")
            try FileManager.default.createSymbolicLink(
                atPath: link.string, withDestinationPath: remote.root.string)
            try await remote.write(Array("mine".utf8), to: "file")
            let manager = TestManager(domain: remote.domain, stateDirectory: state)
            for round in 1...2 {
                let provider = try DirectoryProvider(root: link, manager: manager)
                let own = ProviderSession(provider: provider, manager: manager)
                #expect(try await own.list().map(\.filename) == ["file"], "round \(round)")
                // From now on the link leads elsewhere, and is not asked again.
                let elsewhere = try remote.directory.makeDirectory("elsewhere \(round)")
                try FileManager.default.removeItem(atPath: link.string)
                try FileManager.default.createSymbolicLink(
                    atPath: link.string, withDestinationPath: elsewhere.string)
                #expect(try await own.list().map(\.filename) == ["file"], "round \(round)")
                await provider.invalidate()
            }
        }
    }

    @Test("the same folder on a file system with another device number is the same source")
    func aDeviceNumberMayChange() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let root = try FileDescriptor.open(directory.path, .readOnly, options: .directory)
        defer { try? root.close() }
        let identity = try SourceIdentity(of: root)
        var remounted = identity
        remounted.device += 1
        remounted.fileSystem = 7
        var before = identity
        before.fileSystem = 7
        #expect(before.isSameDirectory(as: remounted))
        remounted.fileSystem = 8
        #expect(!before.isSameDirectory(as: remounted))
        // XFS, whose identifier is the number of the device.
        (before.fileSystem, remounted.fileSystem) = (before.device, remounted.device)
        (before.birth, remounted.birth) = ([7, 8], [7, 8])
        #expect(before.isSameDirectory(as: remounted))
        (before.birth, remounted.birth) = ([7, 0], [7, 0])
        #expect(!before.isSameDirectory(as: remounted))
        before = identity
        before.fileSystem = 7
        remounted = before
        remounted.inode += 1
        #expect(!before.isSameDirectory(as: remounted))
    }

    /// An identity of the top of a file system that has nothing but the number of its device.
    private func anonymous() throws -> SourceIdentity {
        let root = try FileDescriptor.open("/", .readOnly, options: .directory)
        defer { try? root.close() }
        var identity = try SourceIdentity(of: root)
        (identity.inode, identity.device, identity.fileSystem) = (2, 1792, 0)
        (identity.birth, identity.isOnNetwork) = (nil, false)
        return identity
    }

    private func record(_ identity: SourceIdentity, mount: String?, share: String? = nil) -> FolderMounts.Record {
        FolderMounts.Record(
            parent: ItemIdentifier.rootContainer.rawValue, name: "disk", identity: identity, mark: "", isMount: true,
            mount: mount, share: share)
    }

    @Test("FOLDER-1, FOLDER-12: a file system that got the number of another's device is not that one")
    func aDeviceNumberIsGivenAgain() throws {
        var first = try anonymous()
        var second = first
        (first.fileSystem, second.fileSystem) = (7, 8)
        #expect(!first.isSameDirectory(as: second))
        #expect(first.isProvenSame(as: second) == false)
        // Disks that were formatted in the same second.
        (first.birth, second.birth) = ([5, 0], [5, 0])
        #expect(first.isProvenSame(as: second) == false)
        second.fileSystem = 7
        second.device += 1
        #expect(first.isSameDirectory(as: second))
        #expect(first.isProvenSame(as: second) == true)
    }

    @Test("FOLDER-12: a file system without an identity is the same while it is the same mount")
    func withoutAnIdentity() throws {
        let anonymous = try anonymous()
        var xfs = anonymous
        xfs.fileSystem = xfs.device
        for identity in [anonymous, xfs] {
            #expect(!identity.isLasting)
            #expect(identity.isProvenSame(as: identity) == nil)
            // A source stays the same after a restart of the daemon.
            #expect(identity.isSameDirectory(as: identity))
            #expect(record(identity, mount: "boot 1").isSame(as: record(identity, mount: "boot 1")))
            #expect(!record(identity, mount: "boot 1").isSame(as: record(identity, mount: "boot 2")))
            #expect(!record(identity, mount: nil).isSame(as: record(identity, mount: "boot 2")))
        }
        xfs.birth = [5, 6]
        #expect(xfs.isLasting)
        #expect(record(xfs, mount: "boot 1").isSame(as: record(xfs, mount: "boot 2")))
        let share = record(anonymous, mount: "boot 1", share: "nfs4 server:/one /")
        #expect(share.isSame(as: record(anonymous, mount: "boot 2", share: "nfs4 server:/one /")))
        #expect(!share.isSame(as: record(anonymous, mount: "boot 2", share: "nfs4 server:/two /")))
    }
}
