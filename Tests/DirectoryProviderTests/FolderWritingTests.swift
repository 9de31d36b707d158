import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import TestSupport
import Testing

/// What the conformance suite cannot ask: what becomes of the files themselves.
@Suite struct FolderWritingTests {
    private struct Broken: Error {}

    /// The names in a directory of the folder, hidden ones too.
    private func names(_ remote: FolderRemote, _ path: String = "") throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: remote[path]))
    }

    @Test func uploadKeepsAttributesThatTheItemDoesNotHave() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2, 3], to: "file")
            let set = try await Command.shell(
                "chmod 4751 \"$1\" && python3 -c 'import os,sys; os.setxattr(sys.argv[1], \"user.kept\", b\"yes\")' \"$1\"",
                remote["file"])
            try #require(set.status == 0)
            if FUSEAvailability.isRoot { _ = try await Command.run("chown", "12345:23456", remote["file"]) }
            _ = try await Command.run("chmod", "4751", remote["file"])
            let old = try await session.find("file")
            let new = try await session.modify(old, .contents, content: [4]).item
            #expect(new.permissions == 0o4751)
            #expect(new.owner == old.owner)
            #expect(new.group == old.group)
            #expect(new.extendedAttributes == ["kept": Array("yes".utf8)])
            #expect(new.itemIdentifier != old.itemIdentifier)
            #expect(try names(remote) == ["file"])
        }
    }

    @Test("NAME-9: a link that exists already is recognized by a target that is not UTF-8")
    func linkOfBytesThatExists() async throws {
        try await FolderRemote.run { _, session in
            let link = ProviderSession.template("link", kind: .symbolicLink, target: "\u{10FFFF}")
            let made = try await session.create(link)
            let again = try await session.create(link, options: .mayAlreadyExist)
            #expect(again.item.itemIdentifier == made.item.itemIdentifier)
            #expect(again.item.symlinkTargetPath == "\u{10FFFF}")
        }
    }

    @Test("NAME-9: names of extended attributes need not be UTF-8, and an upload keeps them")
    func attributesOfBytes() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2, 3], to: "file")
            let set = try await Command.python(
                "import os, sys; os.setxattr(sys.argv[1], b'user.a\\xff', b'yes')", remote["file"])
            try #require(set.status == 0, "\(set.errors)")
            let old = try await session.find("file")
            #expect(old.extendedAttributes == ["a\u{10FFFF}": Array("yes".utf8)])
            var item = try await session.modify(old, .contents, content: [4]).item
            #expect(item.extendedAttributes == ["a\u{10FFFF}": Array("yes".utf8)])
            item.extendedAttributes = ["b\u{10FFFF}\u{10FFFE}": [1]]
            let stored = try await session.modify(item, .extendedAttributes)
            #expect(stored.stillPending.isEmpty)
            #expect(stored.item.extendedAttributes == ["b\u{10FFFF}\u{10FFFE}": [1]])
            let names = try await Command.python(
                "import os, sys; print([n for n in map(os.fsencode, os.listxattr(sys.argv[1])) if n[:5] == b'user.'])",
                remote["file"])
            #expect(names.output == "[b'user.b\\xff\\xfe']\n", "\(names.errors)")
        }
    }

    /// In a reimport every directory is compared anyway.
    @Test func recognizedDirectoryReportsNoChanges() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            for name in ["one", "two", "three"] { try await remote.write([1], to: "directory/\(name)") }
            let anchor = try await session.anchor()
            _ = try await session.create(
                ProviderSession.template("directory", kind: .directory), options: [.mayAlreadyExist, .keepExisting])
            #expect(try await session.changes(from: anchor).updated == [])
            // But what comes into it from now on is.
            try await remote.write([1], to: "directory/four")
            let news = try await session.changes(from: anchor, until: "an item that was created in it") { batch in
                batch.updated.contains { $0.filename == "four" }
            }
            #expect(!news.updated.contains { $0.filename == "one" })
        }
    }

    /// Writing a file changes no name, and so not the directory either.
    @Test func uploadKeepsTheTimeOfTheDirectory() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            for name in ["one", "two", "three"] { try await remote.write([1], to: "directory/\(name)") }
            let date = Date(timeIntervalSince1970: 1_000_000_000)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: remote["directory"])
            try await withThrowingTaskGroup { group in
                for name in ["one", "two", "three"] {
                    let file = try await session.find("directory/\(name)")
                    group.addTask { _ = try await session.modify(file, .contents, content: [2, 3]) }
                }
                try await group.waitForAll()
            }
            #expect(remote.text("directory/three") == "\u{2}\u{3}")
            let attributes = try FileManager.default.attributesOfItem(atPath: remote["directory"])
            #expect(attributes[.modificationDate] as? Date == date)
        }
    }

    @Test func aReaderNeverSeesHalfOfAFile() async throws {
        try await FolderRemote.run { remote, session in
            let size = 4 << 20
            try await remote.write([UInt8](repeating: 0, count: size), to: "file")
            let path = remote["file"]
            let isOver = Atomic<Bool>(false)
            let reads = Atomic<Int>(0)
            async let odd = Task.detached { () -> [String] in
                var odd: [String] = []
                while !isOver.load(ordering: .relaxed) {
                    defer { reads.add(1, ordering: .relaxed) }
                    guard let data = FileManager.default.contents(atPath: path) else {
                        odd.append("no file")
                        continue
                    }
                    let values = Set(data)
                    if data.count != size || values.count != 1 { odd.append("\(data.count) bytes of \(values)") }
                }
                return odd
            }.value
            var item = try await session.find("file")
            let isReading = await eventually { reads.load(ordering: .relaxed) > 0 }
            for round in 1...8 {
                item = try await session.modify(item, .contents, content: .init(repeating: UInt8(round), count: size))
                    .item
            }
            isOver.store(true, ordering: .relaxed)
            #expect(await odd.isEmpty)
            // One at least was under way while the file was written.
            let count = reads.load(ordering: .relaxed)
            #expect(isReading && count > 1)
        }
    }

    @Test(arguments: [false, true], ["write", "replace", "delete"])
    func changeByOthersDuringAnUploadIsKept(renames: Bool, how: String) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("base".utf8), to: "file")
            var base = try await session.find("file")
            if renames { base.filename = "renamed" }
            let path = remote["file"]
            // Asked when all is copied, and the version was looked at before.
            let content = try TestContent(Array("mine".utf8)) {
                switch how {
                case "write": try Data("theirs".utf8).write(to: URL(fileURLWithPath: path))
                case "replace": try Data("theirs".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                default: try FileManager.default.removeItem(atPath: path)
                }
            }
            let error = await failure {
                _ = try await session.modify(base, renames ? .filename : [], source: content.source)
            }
            if how == "delete" {
                #expect(error?.code == .noSuchItem)
                #expect(try names(remote).isEmpty)
                return
            }
            // A file that was replaced and not only written is another one: it is not renamed.
            let isGone = how == "replace" && renames
            #expect(error?.code == (isGone ? .noSuchItem : .localVersionConflictingWithServer))
            if !isGone { #expect(error?.item?.documentSize == 6) }
            #expect(try names(remote) == ["file"])
            #expect(remote.text("file") == "theirs")
        }
    }

    @Test func fileCreatedByOthersDuringAnUploadIsKept() async throws {
        try await FolderRemote.run { remote, session in
            let path = remote["file"]
            let content = try TestContent(Array("mine".utf8)) {
                try Data("theirs".utf8).write(to: URL(fileURLWithPath: path))
            }
            let error = await failure {
                _ = try await session.create(ProviderSession.template("file"), source: content.source)
            }
            #expect(error?.code == .filenameCollision)
            #expect(error?.item?.documentSize == 6)
            #expect(try names(remote) == ["file"])
            #expect(remote.text("file") == "theirs")
        }
    }

    @Test func aCancelledUploadReturnsAtOnceAndLeavesNothing() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("base".utf8), to: "file")
            let base = try await session.find("file")
            let hangs = DispatchSemaphore(value: 0)
            let hasBegun = Gate()
            let content = try TestContent(Array("mine".utf8)) {
                hasBegun.open()
                hangs.wait()
            }
            let call = Task { try await session.modify(base, .contents, source: content.source) }
            try await hasBegun.pass()
            call.cancel()
            #expect(await failure { _ = try await call.value }?.code == .userCancelled)
            hangs.signal()
            try await Task.sleep(for: .milliseconds(200))
            #expect(try await session.find("file") == base)
            #expect(try await eventually { try names(remote) == ["file"] })
        }
    }

    @Test func repeatedCallAfterALostResponseIsRecognized() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("to")
            try await remote.write(Array("base".utf8), to: "file")
            let base = try await session.find("file")
            var sent = base
            sent.filename = "renamed"
            sent.parentItemIdentifier = try await session.find("to").itemIdentifier
            sent.permissions = 0o600
            let fields: ItemFields = [.filename, .parentItemIdentifier, .permissions]
            // The manager is not told: as when the answer was lost.
            for content in [nil, Array("new".utf8)] as [[UInt8]?] {
                var answers: [FileProviderItem] = []
                for _ in 0..<2 {
                    session.manager.learn([base])
                    let content = try content.map { try TestContent($0) }
                    let all = content == nil ? fields : fields.union(.contents)
                    let change = try await session.provider.modifyItem(
                        sent, baseVersion: base.itemVersion, changedFields: all, contents: content?.source,
                        options: [], request: session.request)
                    guard case .applied(let item, let pending, _) = change else { continue }
                    #expect(pending.isEmpty)
                    answers.append(item)
                }
                #expect(answers.count == 2 && answers.first?.itemIdentifier == answers.last?.itemIdentifier)
                #expect(answers.last?.permissions == 0o600)
                #expect(try names(remote) == ["to"])
                #expect(try names(remote, "to") == ["renamed"])
            }
            #expect(remote.text("to/renamed") == "new")
        }
    }

    @Test func echoOfAChangeReportsTheKnownItem() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("base".utf8), to: "file")
            let anchor = try await session.anchor()
            let base = try await session.find("file")
            // The system hears of the change after the watcher has.
            let content = try TestContent(Array("new".utf8))
            let change = try await session.provider.modifyItem(
                base, baseVersion: base.itemVersion, changedFields: .contents, contents: content.source, options: [],
                request: session.request)
            guard case .applied(let new, _, _) = change else { throw Broken() }
            let created = try await session.provider.createItem(
                basedOn: ProviderSession.template("made"), fields: [.filename, .parentItemIdentifier], contents: nil,
                options: [], request: session.request)
            guard case .applied(let made, _, _) = created else { throw Broken() }
            let learning = Task {
                try await Task.sleep(for: .milliseconds(300))
                session.manager.forget(base.itemIdentifier)
                session.manager.learn([new, made])
            }
            let changes = try await session.changes(from: anchor, until: "the new content") {
                $0.updated.contains { $0.itemIdentifier == new.itemIdentifier }
            }
            try await learning.value
            let rest = try await session.changes(from: changes.anchor)
            #expect((changes.deleted + rest.deleted).isEmpty)
            #expect((changes.updated + rest.updated).allSatisfy { [new, made].contains($0) || $0.kind == .directory })
        }
    }

    @Test func dateIsNotSetOnAnotherVersion() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("mine".utf8), to: "file")
            let base = try await session.find("file")
            // As long as the base: only its time tells it from that.
            try await remote.write(Array("them".utf8), to: "file")
            let theirs = try await session.find("file")
            let answer = try await session.modify(base, .contentModificationDate).item
            #expect(answer.itemVersion.contentVersion == theirs.itemVersion.contentVersion)
            #expect(answer.contentModificationDate == theirs.contentModificationDate)
        }
    }

    @Test func linksAndDirectoriesHaveTimesToo() async throws {
        try await FolderRemote.run { remote, session in
            let date = FileTimestamp(seconds: 981_173_106, nanoseconds: 123_456_789)
            for kind in [ItemKind.directory, .symbolicLink] {
                var template = ProviderSession.template("\(kind)", kind: kind, target: "nowhere")
                template.contentModificationDate = date
                template.permissions = kind == .directory ? 0o750 : 0o777
                let made = try await session.create(template, fields: [.contentModificationDate, .permissions])
                #expect(made.stillPending.isEmpty)
                #expect(made.item.contentModificationDate == date)
                #expect(made.item.permissions == template.permissions)
                // A directory has another time after everything that happens in it: that is no other version.
                var later = made.item
                later.contentModificationDate = FileTimestamp(seconds: 1_000_000_000)
                let changed = try await session.modify(later, .contentModificationDate, base: .beforeFirstSync)
                #expect(changed.item.contentModificationDate == later.contentModificationDate)
            }
        }
    }

    @Test func modesAreThoseOfTheItemWhateverTheUmaskSays() async throws {
        try await FolderRemote.run { remote, session in
            for mode in [0o777, 0o666, 0o444, 0o000, 0o1777, 0o2755] as [UInt16] {
                for kind in [ItemKind.file, .directory] {
                    var template = ProviderSession.template("\(kind)-\(mode)", kind: kind)
                    template.permissions = mode
                    template.extendedAttributes = ["name": [1]]
                    let made = try await session.create(template, fields: [.permissions, .extendedAttributes])
                    #expect(made.item.permissions == mode)
                    #expect(made.stillPending.isEmpty)
                }
            }
        }
    }

    @Test func ownersAreThoseOfTheItemForRootAlone() async throws {
        try await FolderRemote.run { remote, session in
            var template = ProviderSession.template("file")
            (template.owner, template.group) = (12_345, 23_456)
            let made = try await session.create(template, content: [1], fields: .ownership)
            if FUSEAvailability.isRoot {
                #expect(made.stillPending.isEmpty)
                #expect(made.item.owner == 12_345)
                #expect(made.item.group == 23_456)
            } else {
                #expect(made.stillPending == .ownership)
            }
            #expect(try await session.modify(made.item, .ownership).stillPending.isEmpty)
        }
    }
}
