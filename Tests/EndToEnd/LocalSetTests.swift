import Daemon
import FileProvider
import FileProviderTesting
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The enumerators for materialized and for pending items.
    @Suite struct LocalSets {
        private func all(_ enumerator: any FileProviderEnumerator, pageSize: Int = 2) async throws -> [FileProviderItem]
        {
            var items: [FileProviderItem] = []
            var next: FileProviderPage? = .initial
            while let page = next {
                let answer = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: pageSize)
                items += answer.items
                next = answer.nextPage
            }
            return items
        }

        /// What changed since an anchor, which moves on.
        private func changes(
            _ enumerator: any FileProviderEnumerator, since anchor: inout SyncAnchor
        ) async throws -> (updated: Set<ItemIdentifier>, gone: Set<ItemIdentifier>) {
            var (updated, gone): (Set<ItemIdentifier>, Set<ItemIdentifier>) = ([], [])
            while true {
                let batch = try await enumerator.enumerateChanges(from: anchor, suggestedBatchSize: 2)
                updated.formUnion(batch.updated.map(\.itemIdentifier))
                gone.subtract(batch.updated.map(\.itemIdentifier))
                gone.formUnion(batch.deleted)
                updated.subtract(batch.deleted)
                anchor = batch.anchor
                guard batch.moreComing else { return (updated, gone) }
            }
        }

        private func identifiers(_ enumerator: any FileProviderEnumerator) async throws -> Set<ItemIdentifier> {
            Set(try await all(enumerator).map(\.itemIdentifier))
        }

        @Test("E7 (PIN-3) what is kept downloaded refuses with nonEvictable, and no longer when it is not") func e7()
            async throws
        {
            try await ProvidedMount.run(EvictingItems.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["file"], mount["d/one"]).status == 0)
                func pin(_ policy: String) async throws {
                    #expect(
                        try await Command.run(
                            "setfattr", "-n", "user.yonder.policy", "-v", policy, mount["file"], mount["d"]
                        ).status == 0)
                }
                func code(_ identifier: ItemIdentifier) async -> FileProviderError.Code? {
                    await failureCode { try await mount.host.evictItem(identifier: identifier) }
                }
                try await pin("keepDownloaded")
                #expect(await code("file") == .nonEvictable)
                #expect(await code("d") == .nonEvictable)
                #expect(await code("one") == .nonEvictable, "by its directory's policy")
                try await pin("inherited")
                #expect(await eventually { await code("file") == nil })
                #expect(await eventually { await code("d") == nil })
            }
        }

        @Test("E11 (ENUM-3) the materialized items are enumerated, and from an anchor on what came and went")
        func e11Materialized() async throws {
            try await ProvidedMount.run(EvictingItems.tree) { mount async throws in
                let enumerator = try #require(mount.provider.manager).enumeratorForMaterializedItems()
                #expect(try await all(enumerator).isEmpty)
                var anchor = try #require(try await enumerator.currentSyncAnchor())
                #expect(try await Command.run("cat", mount["file"], mount["d/one"]).status == 0)
                #expect(
                    try await eventually {
                        try await identifiers(enumerator) == [.rootContainer, "d", "file", "one"]
                    })
                let first = try await changes(enumerator, since: &anchor)
                #expect(first.updated == [.rootContainer, "d", "file", "one"])
                #expect(first.gone.isEmpty)
                let nothing = try await changes(enumerator, since: &anchor)
                #expect(nothing.updated.isEmpty && nothing.gone.isEmpty)

                let told = mount.provider.materializedNotices
                #expect(await eventually { (try? await mount.host.evictItem(identifier: "d")) != nil })
                let evicted = try await changes(enumerator, since: &anchor)
                #expect(evicted.gone == ["d", "one"])
                #expect(evicted.updated.isEmpty)
                #expect(await eventually { mount.provider.materializedNotices > told })

                #expect(try await Command.run("mv", mount["file"], mount["renamed"]).status == 0)
                let renamed = try await enumerator.enumerateChanges(from: anchor, suggestedBatchSize: 100)
                #expect(renamed.updated.contains { $0.itemIdentifier == "file" && $0.filename == "renamed" })
                anchor = renamed.anchor
                #expect(try await Command.run("rm", mount["renamed"]).status == 0)
                #expect(try await changes(enumerator, since: &anchor).gone.contains("file"))
            }
        }

        @Test(
            "E11 (SEND-8) the pending items are enumerated, new and deleted ones included, and go when they have arrived"
        )
        func e11Pending() async throws {
            try await ProvidedMount.run(EvictingItems.tree) { mount async throws in
                _ = try await Command.run("ls", "-R", mount.path.string)
                let enumerator = try #require(mount.provider.manager).enumeratorForPendingItems()
                #expect(try await all(enumerator).isEmpty)
                var anchor = try #require(try await enumerator.currentSyncAnchor())
                mount.host.engine.pause(.user)
                #expect(
                    try await Command.shell(
                        "cd \"$1\" && echo new > new && rm d/one && mv file moved && mkdir made", mount.path.string
                    ).status == 0)
                let items = try await all(enumerator)
                let names = Set(items.map(\.filename))
                #expect(names.isSuperset(of: ["new", "one", "moved", "made"]), "\(names)")
                #expect(items.contains { $0.itemIdentifier == "one" && $0.capabilities.isEmpty })
                let made = try #require(items.first { $0.filename == "new" })
                #expect(made.documentSize == 4)
                let changed = try await changes(enumerator, since: &anchor)
                #expect(changed.updated == Set(items.map(\.itemIdentifier)))
                #expect(await eventually { mount.provider.pendingNotices > 0 })
                mount.host.engine.pause(nil)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(try await eventually { try await all(enumerator).isEmpty })
                let arrived = try await changes(enumerator, since: &anchor)
                #expect(arrived.updated.isEmpty, "\(arrived.updated)")
                #expect(arrived.gone.isSuperset(of: changed.updated))
                // What was made here is here under its own identifier.
                let materialized = try await all(#require(mount.provider.manager).enumeratorForMaterializedItems())
                let identifier = try #require(materialized.first { $0.filename == "new" }).itemIdentifier
                #expect(mount.provider.tree[identifier]?.filename == "new")
            }
        }

        @Test("E11 anchors survive the daemon, and foreign ones have expired") func e11Anchors() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            provider.change(EvictingItems.tree)
            var anchor = SyncAnchor("")
            try await ProvidedMount.run(provider: provider, in: directory) { mount async throws in
                let enumerator = try #require(mount.provider.manager).enumeratorForMaterializedItems()
                #expect(try await Command.run("cat", mount["file"]).status == 0)
                #expect(try await eventually { try await identifiers(enumerator).contains("file") })
                anchor = try #require(try await enumerator.currentSyncAnchor())
                #expect(try await Command.run("cat", mount["d/one"]).status == 0)
                #expect(try await eventually { try await identifiers(enumerator).contains("one") })
            }
            let next = InMemoryProvider(tree: provider.tree)
            try await ProvidedMount.run(provider: next, in: directory) { mount async throws in
                let enumerator = try #require(mount.provider.manager).enumeratorForMaterializedItems()
                try await mount.host.evictItem(identifier: "file")
                let changed = try await changes(enumerator, since: &anchor)
                #expect(changed.updated == ["d", "one"])
                #expect(changed.gone == ["file"])
                let manager = try #require(mount.provider.manager)
                let pending = try #require(try await manager.enumeratorForPendingItems().currentSyncAnchor())
                for foreign in [pending, SyncAnchor("nonsense"), SyncAnchor("")] {
                    let error = await #expect(throws: FileProviderError.self) {
                        _ = try await enumerator.enumerateChanges(from: foreign, suggestedBatchSize: 10)
                    }
                    #expect(error?.code == .syncAnchorExpired)
                }
                let error = await #expect(throws: FileProviderError.self) {
                    _ = try await enumerator.enumerateItems(
                        startingAt: FileProviderPage(rawValue: [1, 2]), suggestedPageSize: 10)
                }
                #expect(error?.code == .pageExpired)
            }
        }

        @Test("E11 the provider is told of changes to the sets, and not of each alone") func e11Throttled() async throws
        {
            try await ProvidedMount.run { tree in
                for number in 0..<100 { tree.addFile("f\(number)", content: RemoteContent("x")) }
            } _: { mount async throws in
                let start = ContinuousClock.now
                #expect(try await Command.shell("cat \"$1\"/* && touch \"$1\"/*", mount.path.string).status == 0)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(
                    await eventually { mount.provider.materializedNotices > 0 && mount.provider.pendingNotices > 0 })
                let seconds = Int((ContinuousClock.now - start).components.seconds)
                #expect(mount.provider.materializedNotices <= seconds + 2)
                #expect(mount.provider.pendingNotices <= seconds + 2)
            }
        }
    }
}
