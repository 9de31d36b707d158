import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Content that is fetched although no process reads it.
    @Suite struct BackgroundMaterializerTests {
        private func tree(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            for name in ["a", "b"] {
                tree.addFile(name, in: "d", content: RemoteContent("12345"), identifier: ItemIdentifier(name))
            }
            tree.addDirectory("below", in: "d", identifier: "below")
            tree.addFile("deep", in: "below", content: RemoteContent("12345"), identifier: "deep")
            tree.addDirectory("e", identifier: "e")
            tree.addFile("c", in: "e", content: RemoteContent("12345"), identifier: "c")
        }

        private func run(_ test: (EngineFixture) async throws -> Void) async throws {
            try await EngineFixture.run(fill: tree) { fixture in
                try await fixture.engine.refresh()
                try await fixture.list()
                fixture.engine.start()
                try await test(fixture)
            }
        }

        private func set(_ policy: ContentPolicy?, of identifier: ItemIdentifier, _ fixture: EngineFixture) throws {
            try fixture.replica.setPolicy(policy, of: fixture.number(identifier))
            fixture.engine.localChange()
        }

        private func comes(_ identifier: ItemIdentifier, _ fixture: EngineFixture) async throws -> Bool {
            try await eventually(within: .seconds(10)) {
                guard try fixture.replica.database.item(identifier) != nil else { return false }
                return try fixture.inode(identifier).content == .materialized
            }
        }

        @Test func aPinnedDirectoryThatWasNeverListedIsCompleted() async throws {
            try await run { fixture in
                try set(.keepDownloaded, of: "d", fixture)
                for name in ["a", "b", "below", "deep"] as [ItemIdentifier] { #expect(try await comes(name, fixture)) }
                #expect(try fixture.inode("e").content == .dataless)
                #expect(fixture.provider.log.calls(of: .fetch).allSatisfy { $0.request?.reason == .lookAhead })
            }
        }

        @Test("PIN-1: what comes and moves there later is completed too")
        func itemsAddedOrMovedLaterAreDownloaded() async throws {
            try await run { fixture in
                try await fixture.list("e")
                try set(.keepDownloaded, of: "d", fixture)
                #expect(try await comes("deep", fixture))
                fixture.provider.change { tree in
                    tree.addFile("new", in: "below", content: RemoteContent("new"), identifier: "new")
                    tree.move("c", to: "d")
                }
                #expect(try await comes("new", fixture))
                #expect(try await comes("c", fixture))
            }
        }

        @Test("PIN-6: waiting for downloads ends when a tree that was never listed is here")
        func waitsForAnUnlistedTree() async throws {
            try await EngineFixture.run(fill: { tree in
                tree.addDirectory("top", identifier: "top")
                for directory in 0..<4 {
                    let parent = tree.addDirectory("\(directory)", in: "top")
                    for file in 0..<50 {
                        tree.addFile(
                            "\(file)", in: parent, content: RemoteContent("12345"),
                            identifier: ItemIdentifier("\(directory)-\(file)"))
                    }
                }
            }) { fixture in
                try await fixture.list()
                fixture.engine.start()
                try set(.keepDownloaded, of: "top", fixture)
                let failures = try await fixture.engine.waitUntilDownloaded(below: nil, within: .seconds(60))
                #expect(failures?.count == 0)
                for directory in 0..<4 {
                    for file in 0..<50 {
                        let identifier = ItemIdentifier("\(directory)-\(file)")
                        #expect(try fixture.replica.database.item(identifier)?.inode.content == .materialized)
                    }
                }
            }
        }

        @Test("PIN-6: waiting for downloads ends with the reasons of those that fail, of those below the item alone")
        func waitsInVain() async throws {
            try await run { fixture in
                try await fixture.list("d")
                fixture.provider.faults.fail(
                    .fetch, of: "b", with: FileProviderError(.fileReadNoPermission, "no"), times: nil)
                let gate = fixture.provider.faults.hold(.fetch, of: "c")
                try set(.keepDownloaded, of: "d", fixture)
                try set(.keepDownloaded, of: "e", fixture)
                let (d, e) = (try fixture.number("d"), try fixture.number("e"))
                let below = try await fixture.engine.waitUntilDownloaded(below: d, within: .seconds(30))
                #expect(below?.values.map(\.code) == [.fileReadNoPermission])
                let failed = try fixture.number("b")
                #expect(below?.keys.first == failed)
                #expect(try fixture.inode("deep").content == .materialized)
                // The other directory is still being downloaded.
                #expect(try await fixture.engine.waitUntilDownloaded(below: e, within: .milliseconds(300)) == nil)
                #expect(try await fixture.engine.waitUntilDownloaded(below: nil, within: .milliseconds(300)) == nil)
                gate.open()
                let other = try await fixture.engine.waitUntilDownloaded(below: e, within: .seconds(30))
                #expect(other?.count == 0)
                #expect(try fixture.inode("c").content == .materialized)
            }
        }

        @Test func changedOnTheRemoteItIsFetchedAgain() async throws {
            try await run { fixture in
                try set(.keepDownloaded, of: "d", fixture)
                #expect(try await comes("a", fixture))
                fixture.provider.change { $0.write(RemoteContent("newer and longer"), to: "a") }
                #expect(try await eventually { try fixture.inode("a").size == 16 })
                #expect(try await comes("a", fixture))
                #expect(try await fixture.read("a") == Array("newer and longer".utf8))
            }
        }

        @Test func onlyMaterializedFilesAreFetchedAgain() async throws {
            try await run { fixture in
                try await fixture.list("d")
                _ = try await fixture.read("a")
                #expect(try await comes("a", fixture))
                fixture.provider.change { tree in
                    tree.write(RemoteContent("newer a"), to: "a")
                    tree.write(RemoteContent("newer b"), to: "b")
                }
                #expect(try await eventually { try fixture.inode("a").size == 7 })
                #expect(try await comes("a", fixture))
                #expect(try fixture.inode("b").content == .dataless)
                #expect(try fixture.inode("b").size == 7)
            }
        }

        @Test func evictOnUpdateFilesAreNotFetchedAgain() async throws {
            try await run { fixture in
                for directory in ["d", "e"] { try await fixture.list(directory) }
                try set(.lazyEvictOnRemoteUpdate, of: "d", fixture)
                for file in ["a", "c"] as [ItemIdentifier] {
                    _ = try await fixture.read(file)
                    #expect(try await comes(file, fixture))
                }
                fixture.provider.change { $0.write(RemoteContent("newer a"), to: "a") }
                #expect(try await eventually { try fixture.inode("a").size == 7 })
                // The pass of the materializer that fetches this file sees the other one, too.
                fixture.provider.change { $0.write(RemoteContent("newer c"), to: "c") }
                #expect(try await eventually { try fixture.inode("c").size == 7 })
                #expect(try await comes("c", fixture))
                #expect(try fixture.inode("a").content == .dataless)
                #expect(fixture.provider.log.count(of: .fetch, "a") == 1)
            }
        }

        @Test func failedDownloadIsReportedAndRetried() async throws {
            try await run { fixture in
                fixture.provider.faults.fail(
                    .fetch, of: "b", with: FileProviderError(.fileReadNoPermission, "no"), times: nil)
                try set(.keepDownloaded, of: "d", fixture)
                #expect(try await comes("deep", fixture))
                #expect(
                    try await eventually {
                        try fixture.replica.database.failure(of: fixture.number("b"))?.code == "fileReadNoPermission"
                    })
                let number = try fixture.number("b")
                #expect(await eventually { await fixture.engine.nextDownload(of: number) != nil })
                fixture.provider.faults.clear()
                #expect(try await comes("b", fixture))
                #expect(try fixture.replica.database.failure(of: fixture.number("b")) == nil)
            }
        }

        @Test("PIN-2: the pauses before a pinned file is tried again grow, and end with yonder retry")
        func pausesGrowUntilRetry() async throws {
            try await run { fixture in
                try await fixture.list("d")
                let number = try fixture.number("b")
                fixture.provider.faults.fail(
                    .fetch, of: "b", with: FileProviderError(.fileReadNoPermission, "no"), times: nil)
                try set(.keepDownloaded, of: "d", fixture)
                // After one, two and four seconds it is tried again, and then after eight.
                #expect(await fixture.provider.log.waits(for: 4, .fetch, "b", within: .seconds(40)))
                #expect(await eventually { (await fixture.engine.nextDownload(of: number) ?? .zero) > .seconds(5) })
                fixture.provider.faults.clear()
                try await fixture.engine.retry()
                #expect(
                    try await eventually(within: .seconds(4)) {
                        try fixture.inode("b").content == .materialized
                    })
            }
        }

        @Test("READ-8: four at once and a reader goes first") func fourAtOnceAndAReaderGoesFirst() async throws {
            try await EngineFixture.run(
                options: .with(\.concurrentCalls, 4),
                fill: { tree in
                    tree.addDirectory("d", identifier: "d")
                    for number in 0..<12 {
                        tree.addFile(
                            "\(number)", in: "d", content: RemoteContent("12345"),
                            identifier: ItemIdentifier("\(number)"))
                    }
                    tree.addFile("other", content: RemoteContent("other"), identifier: "other")
                }
            ) { fixture in
                try await fixture.list("d")
                fixture.engine.start()
                let gates = (0..<12).map { fixture.provider.faults.hold(.fetch, of: ItemIdentifier("\($0)")) }
                try set(.keepDownloaded, of: "d", fixture)
                #expect(await eventually { gates.count { $0.waiting > 0 } == 3 })
                #expect(try await fixture.read("other") == Array("other".utf8))
                // A process that reads one of the waiting files gets it.
                let reader = Task { try await fixture.read("11") }
                #expect(await eventually { gates[11].waiting > 0 })
                gates.forEach { $0.open() }
                #expect(try await reader.value.count == 5)
                #expect(try await comes("5", fixture))
                #expect(fixture.provider.log.mostAtOnce(.fetch) <= 4)
            }
        }

        @Test func userPolicyOverridesProviderPolicy() async throws {
            try await run { fixture in
                try await fixture.list("d")
                try set(.lazy, of: "a", fixture)
                fixture.provider.change { tree in
                    for name in ["a", "b"] as [ItemIdentifier] {
                        tree.edit(name) { $0.contentPolicy = .keepDownloaded }
                    }
                }
                #expect(try await comes("b", fixture))
                #expect(try fixture.replica.database.item("a")?.policy == .lazy)
                #expect(try fixture.inode("a").content == .dataless)
                try set(nil, of: "a", fixture)
                #expect(try fixture.replica.database.item("a")?.policy == .keepDownloaded)
                #expect(try await comes("a", fixture))
                // The provider takes its word back.
                fixture.provider.change { $0.edit("b") { $0.contentPolicy = .inherited } }
                #expect(
                    try await eventually { try fixture.replica.database.item("b")?.policy == .inherited })
            }
        }

        @Test func unpinnedItCanBeEvictedAtOnceAlsoWhileItComes() async throws {
            try await run { fixture in
                try await fixture.list("d")
                let gate = fixture.provider.faults.hold(.fetch, of: "a")
                try set(.keepDownloaded, of: "d", fixture)
                #expect(await eventually { gate.waiting > 0 })
                #expect(try await comes("b", fixture))
                let refused = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                #expect(refused.refusals.map(\.refusal) == [.nonEvictable])
                #expect(refused.refusals.map(\.number) == [try fixture.number("d")])
                try set(.inherited, of: "d", fixture)
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                #expect(report.refusals.isEmpty)
                #expect(try fixture.inode("a").content == .dataless)
                #expect(try fixture.inode("b").content == .dataless)
                #expect(await eventually { gate.waiting == 0 })
            }
        }

        @Test func missingContentIsFetchedAfterRestart() async throws {
            try await EngineFixture.run(fill: tree, listing: "d") { fixture async throws in
                try fixture.replica.setPolicy(.keepDownloaded, of: fixture.number("d"))
                // Only now is the materializer started.
                fixture.engine.start()
                #expect(try await comes("deep", fixture))
            }
        }
    }
}
