import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// A remote whose content versions may be those of two contents.
    @Suite struct ContentDoubtTests {
        private static let old = RemoteContent.pattern(size: 3 << 20, seed: 1)
        private static let new = RemoteContent.pattern(size: 3 << 20, seed: 2)

        private func run(reading range: Range<Int64>?, _ test: (EngineFixture) async throws -> Void) async throws {
            var options = InMemoryProvider.Options.with(\.contentVersionsMayRepeat, true)
            options.chunkSize = 64 << 10
            try await EngineFixture.run(
                options: options, fill: { $0.addFile("f", content: Self.old, identifier: "f") }, listing: "/"
            ) { fixture async throws in
                fixture.engine.start()
                // The round that this begins with is over: it would compare a file again whose comparison has just failed.
                #expect(await fixture.provider.log.waits(.anchor))
                try await fixture.engine.refresh()
                if let range {
                    _ = try await fixture.read("f", range)
                    // What was read is recorded a moment later.
                    let count = range.upperBound - range.lowerBound
                    #expect(try await eventually { try fixture.inode("f").localBytes >= count })
                }
                try await test(fixture)
            }
        }

        /// The metadata version that changes of the file are based on.
        private func base(_ fixture: EngineFixture) throws -> [UInt8]? {
            try fixture.replica.database.item("f")?.base.version.metadataVersion
        }

        private func present(_ fixture: EngineFixture) -> [UInt8]? {
            fixture.provider.changeSilently { $0.items(in: .rootContainer).first?.itemVersion.metadataVersion }
        }

        @Test(
            "FOLDER-17: content that was written on the remote without another version is compared, and fetched again")
        func whole() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let before = try fixture.inode("f").contentGeneration
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(try await eventually { try fixture.inode("f").contentGeneration != before })
                #expect(try await eventually { try base(fixture) == present(fixture) })
                #expect(try await fixture.read("f") == Self.new[0..<Self.new.size])
            }
        }

        @Test("FOLDER-17: equal content stays, and is compared once") func equal() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let before = try fixture.inode("f").contentGeneration
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.old, to: "f") }
                #expect(try await eventually { try base(fixture) == present(fixture) })
                #expect(fixture.provider.log.calls(of: .fetch).count == fetches + 1)
                let inode = try fixture.inode("f")
                #expect(inode.contentGeneration == before && inode.content == .materialized)
            }
        }

        @Test("FOLDER-17: a file of which a part is here is fetched anew, and nothing is compared") func part()
            async throws
        {
            try await run(reading: 0..<4096) { fixture async throws in
                try #require(try fixture.inode("f").content == .partial)
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(try await eventually { try base(fixture) == present(fixture) })
                #expect(try await fixture.read("f") == Self.new[0..<Self.new.size])
            }
        }

        @Test("FOLDER-17: a file without bytes is not compared") func empty() async throws {
            try await EngineFixture.run(
                options: .with(\.contentVersionsMayRepeat, true),
                fill: { $0.addFile("f", content: RemoteContent(""), identifier: "f") }, listing: "/"
            ) { fixture async throws in
                fixture.engine.start()
                let before = try base(fixture)
                fixture.provider.change { $0.writeSameVersion(RemoteContent(""), to: "f") }
                #expect(try await eventually { try base(fixture) == present(fixture) })
                let after = try base(fixture)
                #expect(after != before)
                #expect(fixture.provider.log.calls(of: .fetch).isEmpty)
            }
        }

        /// Gives the file another name here, once all of it is here.
        private func link(_ fixture: EngineFixture) async throws -> InodeNumber {
            #expect(try await eventually { try fixture.inode("f").content == .materialized })
            let number = try fixture.number("f")
            _ = try fixture.replica.change(open: fixture.open) {
                _ = try $0.names.link(number, as: "link", in: .root)
            }
            return number
        }

        @Test("FOLDER-17: of several names, one whose content was written on the remote is a file of its own")
        func oneOfTwoNames() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let number = try await link(fixture)
                let generation = try fixture.inode("f").contentGeneration
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(try await eventually { try fixture.number("f") != number })
                #expect(try await eventually { try base(fixture) == present(fixture) })
                #expect(try await fixture.read("f") == Self.new[0..<Self.new.size])
                let other = try #require(try fixture.replica.database.item(ofInode: number))
                #expect(other.name == "link" && other.inode.linkCount == 1)
                #expect(other.inode.content == .materialized && other.inode.contentGeneration == generation)
            }
        }

        @Test("FOLDER-17: of several names, equal content leaves them one file") func bothNames() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let number = try await link(fixture)
                fixture.provider.change { $0.writeSameVersion(Self.old, to: "f") }
                #expect(try await eventually { try base(fixture) == present(fixture) })
                let inode = try fixture.inode("f")
                #expect(inode.number == number && inode.linkCount == 2 && inode.content == .materialized)
            }
        }

        @Test("FOLDER-17: a change that attributes explain compares nothing") func explained() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.edit("f") { $0.permissions = 0o600 } }
                #expect(try await eventually { try fixture.inode("f").permissions == 0o600 })
                #expect(try base(fixture) == present(fixture))
                #expect(fixture.provider.log.calls(of: .fetch).count == fetches)
            }
        }

        @Test(
            "FOLDER-17: a later change that attributes explain does not end a comparison that is due",
            arguments: [FileProviderError.Code.cannotSynchronize, .noSuchItem])
        func explainedLater(failure: FileProviderError.Code) async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                fixture.provider.faults.add(.fail(FileProviderError(failure)), to: .fetch, times: 1)
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count > fetches })
                fixture.provider.change { $0.edit("f") { $0.permissions = 0o600 } }
                #expect(try await eventually { try base(fixture) == present(fixture) })
                let beginning = Self.new[0..<4096]
                // A read fails where the comparison drops the content in the middle of it.
                #expect(await eventually { (try? await fixture.read("f", 0..<4096)) == beginning })
            }
        }

        @Test("FOLDER-17: a comparison does not take back a change that was noticed meanwhile") func changedMeanwhile()
            async throws
        {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let gate = Gate()
                fixture.provider.faults.add(.hold(gate), to: .fetch, times: 1)
                fixture.provider.change { $0.writeSameVersion(Self.old, to: "f") }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.change { $0.edit("f") { $0.permissions = 0o600 } }
                #expect(try await eventually { try fixture.inode("f").permissions == 0o600 })
                gate.open()
                #expect(try await eventually { try base(fixture) == present(fixture) })
                // Nothing follows that would set it back.
                try await Task.sleep(for: .milliseconds(300))
                #expect(try base(fixture) == present(fixture))
            }
        }

        /// All of many files is here.
        private func runWithMany(_ test: (EngineFixture, [ItemIdentifier]) async throws -> Void) async throws {
            let names = (0..<20).map { ItemIdentifier("f\($0)") }
            func fill(_ tree: inout RemoteTree) {
                for name in names { tree.addFile(name.rawValue, content: RemoteContent("x"), identifier: name) }
            }
            try await EngineFixture.run(
                options: .with(\.contentVersionsMayRepeat, true), fill: fill, listing: "/"
            ) { fixture async throws in
                fixture.engine.start()
                // A first round that is not over would compare the directory, and find only some of the files at first.
                #expect(await fixture.provider.log.waits(.anchor))
                try await fixture.engine.refresh()
                for name in names { _ = try await fixture.read(name) }
                for name in names {
                    #expect(try await eventually { try fixture.inode(name).content == .materialized })
                }
                fixture.provider.log.clear()
                try await test(fixture, names)
            }
        }

        @Test("FOLDER-17: a file that a process opens is compared before others") func opened() async throws {
            try await runWithMany { fixture, names async throws in
                let gate = Gate()
                fixture.provider.faults.add(.hold(gate), to: .fetch, times: 1)
                fixture.provider.change { tree in
                    for name in names { tree.writeSameVersion(RemoteContent("x"), to: name) }
                }
                #expect(await eventually { gate.waiting == 1 })
                let first = try #require(fixture.provider.log.calls(of: .fetch).first?.identifier)
                let opened = try #require(names.last(where: { $0 != first }))
                fixture.engine.inodeWasOpened(try fixture.number(opened))
                gate.open()
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count == names.count })
                #expect(fixture.provider.log.calls(of: .fetch).dropFirst().first?.identifier == opened)
            }
        }

        @Test("FOLDER-17: a file that a process has open already is compared before others") func isOpen()
            async throws
        {
            try await runWithMany { fixture, names async throws in
                let last = try #require(names.last)
                fixture.open.insert(try fixture.number(last))
                fixture.provider.change { tree in
                    for name in names { tree.writeSameVersion(RemoteContent("x"), to: name) }
                }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count == names.count })
                #expect(fixture.provider.log.calls(of: .fetch).first?.identifier == last)
            }
        }

        @Test(
            "FOLDER-17: a file that was open for writing is compared when its last writer has closed it",
            arguments: [true, false])
        func closed(isRead: Bool) async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                let item = try #require(try fixture.replica.database.item("f"))
                let (row, number) = (item.id, item.inode.number)
                _ = try fixture.replica.change(open: fixture.open) {
                    try $0.contents.beginWriting(number, truncating: false, caller: Machine.caller)
                }
                fixture.open.insert(number)
                fixture.provider.change { $0.writeSameVersion(Self.old, to: "f") }
                // Each close of a handle leads to an attempt. After so many in vain the next one by itself comes after a minute.
                for count in 1...7 {
                    #expect(await eventually { await fixture.engine.doubts.attempts(ofItem: row) >= count })
                    fixture.engine.inodeWasClosed(number)
                }
                #expect(await eventually { await fixture.engine.doubts.attempts(ofItem: row) >= 8 })
                #expect(try base(fixture) != present(fixture))
                _ = try fixture.replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
                if isRead {
                    fixture.engine.writingHasEnded(number)
                } else {
                    fixture.open.remove(number)
                    fixture.engine.inodeWasClosed(number)
                }
                #expect(try await eventually(within: .seconds(20)) { try base(fixture) == present(fixture) })
            }
        }

        @Test("FOLDER-17: a comparison that a pause has interrupted is made when the domain is resumed")
        func resumed() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let gate = Gate()
                fixture.provider.faults.add(.hold(gate), to: .item, of: "f", times: 1)
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(await eventually { gate.waiting == 1 })
                let row = try #require(try fixture.replica.database.item("f")).id
                fixture.engine.pause(.user)
                gate.open()
                #expect(await eventually { await fixture.engine.doubts.attempts(ofItem: row) == 1 })
                // The time of the next attempt, which is a second later, passes in the pause.
                try await Task.sleep(for: .milliseconds(1100))
                fixture.engine.pause(nil)
                let beginning = Self.new[0..<4096]
                // A read fails where the comparison drops the content in the middle of it.
                #expect(await eventually { (try? await fixture.read("f", 0..<4096)) == beginning })
            }
        }

        @Test("FOLDER-17: a file that is evicted before it was compared is based on the present version") func evicted()
            async throws
        {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                fixture.provider.faults.add(.fail(FileProviderError(.cannotSynchronize)), to: .fetch, times: 1)
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count > fetches })
                let number = try fixture.number("f")
                _ = try await fixture.engine.evict(number, isStrict: true)
                try #require(try fixture.inode("f").content == .dataless)
                #expect(try await eventually { try base(fixture) == present(fixture) })
            }
        }

        @Test("FOLDER-17: a file that is fetched in parts before it was compared is compared when all of it is here")
        func fetchedInParts() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                fixture.provider.faults.add(.fail(FileProviderError(.cannotSynchronize)), to: .fetch, times: 1)
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count > fetches })
                let number = try fixture.number("f")
                _ = try await fixture.engine.evict(number, isStrict: true)
                _ = try await fixture.read("f", 0..<4096)
                let row = try #require(try fixture.replica.database.item("f")).id
                // After so many attempts in vain the next one by itself comes after more than a minute.
                for count in 2...7 {
                    #expect(await eventually { await fixture.engine.doubts.attempts(ofItem: row) >= count })
                    fixture.engine.inodeWasClosed(number)
                }
                #expect(await eventually { await fixture.engine.doubts.attempts(ofItem: row) >= 8 })
                #expect(try base(fixture) != present(fixture))
                _ = try await fixture.read("f")
                #expect(try await eventually(within: .seconds(20)) { try base(fixture) == present(fixture) })
            }
        }

        @Test("FOLDER-17: a process that opens and closes a file does not have a comparison made again that has failed")
        func closedAfterFailure() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                fixture.provider.faults.add(.fail(FileProviderError(.cannotSynchronize)), to: .fetch)
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.old, to: "f") }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count > fetches })
                let number = try fixture.number("f")
                for _ in 0..<20 {
                    fixture.engine.inodeWasClosed(number)
                    try await Task.sleep(for: .milliseconds(20))
                }
                #expect(fixture.provider.log.calls(of: .fetch).count <= fetches + 4)
            }
        }

        @Test("FOLDER-17: while the remote cannot be asked, the base stays, and the comparison is made later")
        func failing() async throws {
            try await run(reading: 0..<Self.old.size) { fixture async throws in
                let before = try #require(try base(fixture))
                fixture.provider.faults.add(.fail(FileProviderError(.cannotSynchronize)), to: .fetch, times: 1)
                let fetches = fixture.provider.log.calls(of: .fetch).count
                fixture.provider.change { $0.writeSameVersion(Self.new, to: "f") }
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).count > fetches })
                let kept = try base(fixture)
                #expect(kept == [UInt8(ascii: "?")] + before)
                #expect(try await eventually { try base(fixture) == present(fixture) })
                #expect(try await fixture.read("f") == Self.new[0..<Self.new.size])
            }
        }
    }
}
