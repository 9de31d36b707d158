import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Changes never leave the folder, and hidden files are never shown.
@Suite struct FolderSafetyTests {
    private func names(_ path: String) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: path))
    }

    @Test func aLinkInPlaceOfADirectoryLeadsNowhere() async throws {
        try await FolderRemote.run { remote, session in
            let (directory, file, outside) = try await remote.replaceDirectoryByLink(in: session)
            let template = ProviderSession.template("new", in: directory.itemIdentifier)
            #expect(await failureCode { _ = try await session.create(template, content: [1]) } == .noSuchItem)
            #expect(await failureCode { _ = try await session.modify(file, .contents, content: [1]) } == .noSuchItem)
            try await session.delete(file)
            try await session.delete(directory, recursively: true)
            #expect(try names(outside.string) == ["file"])
            #expect(try names(remote.directory["elsewhere"].string) == ["file"])
            #expect(try names(remote.root.string) == ["directory"])
        }
    }

    @Test func deletingALinkKeepsItsTarget() async throws {
        try await FolderRemote.run { remote, session in
            let outside = try remote.directory.makeDirectory("outside")
            _ = try remote.directory.makeFile("outside/file", Array("secret".utf8))
            try await remote.makeDirectory("directory")
            try FileManager.default.createSymbolicLink(
                atPath: remote["directory/link"], withDestinationPath: outside.string)
            let made = try await Command.shell(
                "cd \"$1\" && mkfifo fifo && mkdir \"$(printf 'bad\\377')\" && touch \"$(printf 'bad\\377/worse\\376')\"",
                remote["directory"])
            try #require(made.status == 0)
            let directory = try await session.find("directory")
            #expect(await failureCode { try await session.delete(directory) } == .directoryNotEmpty)
            try await session.delete(directory, recursively: true)
            #expect(try names(remote.root.string).isEmpty)
            #expect(try names(outside.string) == ["file"])
        }
    }

    @Test("FOLDER-15: a deleted directory that contains a FIFO in the source stays, and the message names the FIFO")
    func deletingADirectoryWithASpecialFile() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            for name in ["a", "c", "d"] { try await remote.write([1], to: "directory/\(name)") }
            _ = try await Command.run("mkfifo", remote["directory/b"])
            let directory = try await session.find("directory")
            let error = await failure { try await session.delete(directory) }
            #expect(error?.code == .directoryNotEmpty)
            #expect(
                error?.message.hasSuffix(
                    "it contains 'a', 'b' (a FIFO, socket or device, which is not shown), 'c' and 1 more") == true)
            #expect(try names(remote["directory"]) == ["a", "b", "c", "d"])
            #expect(try await session.list(directory.itemIdentifier).map(\.filename).sorted() == ["a", "c", "d"])
        }
    }

    @Test func specialFilesAreNeitherReplacedNorAdopted() async throws {
        try await FolderRemote.run { remote, session in
            _ = try await Command.run("mkfifo", remote["fifo"])
            let made = await failureCode {
                _ = try await session.create(ProviderSession.template("fifo"), content: [1])
            }
            #expect(made == .cannotSynchronize)
            let file = try await session.create(ProviderSession.template("file"), content: [1]).item.renamed("fifo")
            #expect(await failureCode { _ = try await session.modify(file, .filename) } == .cannotSynchronize)
            #expect(try names(remote.root.string) == ["fifo", "file"])
        }
    }

    @Test func hiddenNamesAreTheProvidersOwn() async throws {
        try await FolderRemote.run { remote, session in
            let anchor = try await session.anchor()
            try await session.list()
            let hidden = HiddenName.make()
            try await remote.write([1], to: hidden)
            try await remote.write([1], to: "file")
            let changes = try await session.changes(from: anchor, until: "the file") {
                $0.updated.contains { $0.filename == "file" }
            }
            #expect(!changes.updated.contains { $0.filename == hidden })
            // A young one may be of a change under way.
            #expect(try await session.list().map(\.filename) == ["file"])
            #expect(try names(remote.root.string) == ["file", hidden])
            let template = ProviderSession.template(HiddenName.make())
            #expect(await failureCode { _ = try await session.create(template, content: [1]) } == .excludedFromSync)
        }
    }

    @Test func oldLeftoversAreRemovedWhenTheirDirectoryIsListed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            try await remote.write([1], to: "directory/\(HiddenName.make())")
            let provider = try DirectoryProvider(root: remote.root, manager: session.manager, leftoverAge: 0)
            let other = ProviderSession(provider: provider, manager: session.manager)
            let directory = try await other.find("directory")
            #expect(try await other.list(directory.itemIdentifier).isEmpty)
            await provider.invalidate()
            #expect(try names(remote["directory"]).isEmpty)
            // Young or old, they keep no directory alive.
            try await remote.write([1], to: "directory/\(HiddenName.make())")
            try await session.delete(directory)
            #expect(try names(remote.root.string).isEmpty)
        }
    }

    @Test("CONFLICT-2: the removal of leftovers spares a file that was made since they were listed")
    func madeAfterTheLeftoversWereListed() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        _ = try directory.makeFile(HiddenName.make(), [1])
        let open = try FileDescriptor.openDirectory(directory.path)
        defer { try? open.close() }
        let leftovers = try open.names()
        _ = try directory.makeFile("new", [2])
        try open.remove(leftovers) { _, _ in }
        #expect(try names(directory.path.string) == ["new"])
    }

    @Test func uploadsWithoutNamelessFilesUseHiddenNames() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("old".utf8), to: "there")
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let cancellation = BlockingCalls.Cancellation()
            func upload(_ text: String) throws -> Upload {
                let upload = try Upload(in: root, permissions: 0o644, isNameless: false)
                try upload.file.writeAll(text.utf8)
                return upload
            }
            do {
                let abandoned = try upload("abandoned")
                #expect(try names(remote.root.string).count == 2)
                #expect(throws: Errno.fileExists) { try abandoned.publish(as: "there", cancellation) }
            }
            #expect(try names(remote.root.string) == ["there"])
            try upload("new").publish(as: "new", cancellation)
            let status = try FileStatus(of: "there", in: root)
            #expect(try upload("first").replace("there", expecting: status, folder, cancellation) == .done)
            #expect(try upload("second").replace("there", expecting: status, folder, cancellation) == .conflict)
            #expect(try names(remote.root.string) == ["new", "there"])
            #expect(try String(contentsOfFile: remote["there"], encoding: .utf8) == "first")
        }
    }

    @Test("the state of a name that a server is asked for is that of the file, and of no link's target")
    func freshStatus() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        _ = try directory.makeFile("file", [1, 2])
        try FileManager.default.createSymbolicLink(
            atPath: directory["link"].string, withDestinationPath: directory["file"].string)
        let open = try FileDescriptor.openDirectory(directory.path)
        defer { try? open.close() }
        for name in ["file", "link"] {
            #expect(try FileStatus(of: name, in: open, isFresh: true) == FileStatus(of: name, in: open))
        }
        #expect(try FileStatus(of: open, isFresh: true) == FileStatus(of: open))
        #expect(throws: Errno.noSuchFileOrDirectory) { try FileStatus(of: "none", in: open, isFresh: true) }
    }

    @Test func displacedFileIsRestoredBesideANewOne() async throws {
        try await FolderRemote.run { remote, session in
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let hidden = HiddenName.make()
            try await remote.write([1], to: hidden)
            try await remote.write([2], to: "file")
            folder.giveBack(hidden, as: "file", in: root)
            #expect(try names(remote.root.string) == ["file", "1 file"])
            #expect(session.manager.warnings.count == 1)
        }
    }

    @Test("FOLDER-13: a file that another program makes while the case of a name changes is not replaced")
    func aChangeOfCaseReplacesNothing() async throws {
        try await FolderRemote.run { remote, session in
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let writer = FolderWriter(folder: folder, cancellation: BlockingCalls.Cancellation())
            func entry(_ name: String) -> FolderWriter.NamedEntry {
                FolderWriter.NamedEntry(directory: root, name: name, parent: .rootContainer)
            }
            try await remote.write([1], to: "file")
            try writer.changeCase(from: entry("file"), to: entry("File"))
            #expect(try names(remote.root.string) == ["File"])
            try await remote.write([2], to: "FILE")
            #expect(
                await failureCode { try writer.changeCase(from: entry("File"), to: entry("FILE")) }
                    == .filenameCollision)
            #expect(try names(remote.root.string) == ["File", "FILE"])
            #expect(FileManager.default.contents(atPath: remote["FILE"]) == Data([2]))
        }
    }

    /// A small file system of its own, where this process may make one.
    func onTemporaryFileSystem(
        _ options: String, _ test: (FolderRemote, ProviderSession) async throws -> Void
    ) async throws {
        let remote = try FolderRemote()
        defer { remote.directory.remove() }
        let root = remote.root.string
        guard FUSEAvailability.isRoot,
            try await Command.run("mount", "-t", "tmpfs", "-o", options, "tmpfs", root).status == 0
        else { return }
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
        var failure: (any Error)?
        do {
            let provider = try await remote.makeProvider(for: manager)
            try await test(remote, ProviderSession(provider: provider, manager: manager))
            await provider.invalidate()
        } catch {
            failure = error
        }
        _ = try await Command.run("umount", "-l", root)
        if let failure { throw failure }
    }

    @Test func aFullDiskIsAQuota() async throws {
        try await onTemporaryFileSystem("size=256k") { remote, session in
            let file = try await session.create(ProviderSession.template("file"), content: [1, 2]).item
            let much = [UInt8](repeating: 1, count: 1 << 20)
            let made = await failureCode {
                _ = try await session.create(ProviderSession.template("much"), content: much)
            }
            #expect(made == .insufficientQuota)
            #expect(
                await failureCode { _ = try await session.modify(file, .contents, content: much) } == .insufficientQuota
            )
            #expect(try await session.list() == [file])
            #expect(try names(remote.root.string) == ["file"])
            try await session.create(ProviderSession.template("little"), content: [1])
        }
    }

    @Test func aReadOnlyDiskIsNotWritten() async throws {
        try await onTemporaryFileSystem("ro") { _, session async throws in
            #expect(!session.provider.features.writing)
            #expect(try await session.item(.rootContainer).capabilities == .readOnly)
            let made = await failureCode {
                _ = try await session.create(ProviderSession.template("file"), content: [1])
            }
            #expect(made == .cannotSynchronize)
        }
    }

    /// Runs a test with mounts of FUSE in the folder whose program has died.
    private func withDeadMounts(_ places: [String], _ test: () async throws -> Void) async throws {
        var failure: (any Error)?
        do {
            for place in places {
                let mounted = try await Command.shell(
                    """
                    exec 9<>/dev/fuse
                    mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 dead "$1"
                    """, place)
                try #require(mounted.status == 0, "\(mounted.errors)")
            }
            try await test()
        } catch {
            failure = error
        }
        for place in places { _ = try await Command.run("umount", "-l", place) }
        if let failure { throw failure }
    }

    @Test(
        "FOLDER-12: a file system below the folder that does not answer keeps its items, and the rest of the folder goes on",
        .enabled(if: FUSEAvailability.isRoot && FUSEAvailability.isAvailable, "only root can mount"))
    func aDeadMount() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("disk")
            try await remote.write([1], to: "disk/file")
            let file = try await session.find("disk/file")
            try await remote.makeDirectory("unseen")
            // A change in the directory below the mount is still noticed.
            let below = try FileHandle(forWritingTo: URL(fileURLWithPath: remote["disk/file"]))
            defer { try? below.close() }
            try await withDeadMounts([remote["disk"], remote["unseen"]]) {
                let listed = try await session.list()
                #expect(listed.map(\.filename) == ["disk"])
                #expect(listed.first?.itemIdentifier == file.parentItemIdentifier)
                #expect(session.manager.warnings.count { $0.contains("does not answer") } == 2)
                #expect(
                    await failureCode { _ = try await session.item(file.itemIdentifier) } == .ubiquitousFileUnavailable)
                #expect(
                    await failureCode {
                        _ = try await session.create(ProviderSession.template("unseen"), content: [1])
                    } == .ubiquitousFileUnavailable)
                var changes: ChangeBatch?
                for number in 1...20 where changes == nil {
                    let anchor = try await session.anchor()
                    try below.write(contentsOf: Data([2]))
                    let name = "beside\(number)"
                    try await remote.write([3], to: name)
                    do {
                        changes = try await session.changes(from: anchor, until: "the file beside it") { batch in
                            batch.updated.contains { $0.filename == name }
                        }
                    } catch let error as FileProviderError where error.code == .syncAnchorExpired {
                        // The mounts were noticed after the anchor was taken.
                    }
                }
                #expect(changes?.deleted == [])
            }
        }
    }

    @Test(
        "CHANGE-1: what was changed in a directory before it was moved is reported, also soon after another such move")
    func changesBeforeAMove() async throws {
        try await FolderRemote.run { remote, session in
            for round in 1...3 {
                let top = "top\(round)"
                for path in [top, top + "/a", top + "/a/b"] {
                    try await remote.makeDirectory(path)
                    _ = try await session.find(path)
                }
                try await remote.write(Array("old".utf8), to: top + "/a/b/file")
                let file = try await session.find(top + "/a/b/file")
                let anchor = try await session.anchor()
                let done = try await Command.shell(
                    "cd \"$1\" && echo newer > a/b/file && echo new > a/b/new && mv a n", remote[top])
                #expect(done.status == 0, "\(done.errors)")
                let changes = try await session.changes(from: anchor, until: "the changes of round \(round)") { batch in
                    batch.updated.contains { $0.filename == "new" }
                        && batch.updated.contains { $0.itemIdentifier == file.itemIdentifier && $0.documentSize == 6 }
                        && batch.updated.contains { $0.filename == "n" }
                }
                #expect(!changes.deleted.contains(file.itemIdentifier))
            }
        }
    }

    @Test("ACCESS-10: a set-ID file of another user does not become one of the user who owns the file in the folder")
    func setIDOfOthers() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        func status(_ path: FilePath) throws -> FileStatus { try FileStatus(at: path) }
        let file = try status(try directory.makeFile("file", []))
        let folder = try status(try directory.makeDirectory("folder"))
        func mode(_ owner: UInt32?, _ group: UInt32?, _ status: FileStatus) -> UInt16 {
            FolderAttributes.withoutForeignSetID(0o6755, owner, group, status)
        }
        #expect(mode(nil, nil, file) == 0o6755)
        #expect(mode(file.owner, file.group, file) == 0o6755)
        #expect(mode(file.owner + 1, file.group, file) == 0o2755)
        #expect(mode(file.owner, file.group + 1, file) == 0o4755)
        #expect(mode(folder.owner + 1, folder.group + 1, folder) == 0o6755)
    }

    @Test("FOLDER-10: a folder whose files have no lasting inode numbers is refused with another way to mount it")
    func unstableNumbers() {
        for type in ["vfat", "exfat", "fuse.sshfs", "fuse.rclone"] {
            #expect(FolderFileSystem.remedy(for: type, "/folder") != nil)
        }
        for type in ["ext4", "btrfs", "tmpfs", "nfs4", "fuse.yonder", "overlay"] {
            #expect(FolderFileSystem.remedy(for: type, "/folder") == nil)
        }
        #expect(FolderFileSystem.remedy(for: "vfat", "/media/stick")?.contains("'rclone::local:/media/stick'") == true)
    }

    @Test(
        "FOLDER-10: on such a file system a domain is offline, and below a folder it is a directory that cannot be listed",
        arguments: [
            ("vfat", "rclone::local:/media/stick"), ("exfat", "rclone::local:/media/stick"),
            ("fuse.sshfs", "sftp://[USER@]HOST/PATH"), ("fuse.rclone", "rclone:REMOTE:PATH"),
        ])
    func unstableFileSystems(type: String, source: String) async {
        let lines = ["21 1 8:1 / / rw - ext4 /dev/sda1 rw", "30 21 8:17 / /media/stick rw - \(type) /dev/sdb1 rw"]
        let table = MountTable(parsing: Array(lines.joined(separator: "\n").utf8))
        for path in ["/media/stick", "/media/stick/photos"] as [FilePath] {
            let refusal = await failure { try FolderFileSystem.check(path, in: table) }
            #expect(refusal?.code == .serverUnreachable && refusal?.code.reaction == .latchDomain)
            #expect(refusal?.message.contains("'\(path)'") == true && refusal?.message.contains(source) == true)
        }
        #expect(await failureCode { try FolderFileSystem.check("/media/sticks", in: table) } == nil)
        let device = FileStatus.device(major: 8, minor: 17)
        let defect = FolderFileSystem.defect(of: device, named: "stick", in: table)
        #expect(defect?.code == .ubiquitousFileUnavailable && defect?.errno == .notSupported)
        #expect(defect?.message.contains("'stick'") == true && defect?.message.contains("'\(source)'") == true)
        #expect(FolderFileSystem.defect(of: FileStatus.device(major: 8, minor: 1), named: "home", in: table) == nil)
    }
}
