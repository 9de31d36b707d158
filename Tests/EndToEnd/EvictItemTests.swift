import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The contract of `evictItem(identifier:)` and its siblings, by the numbers of its page.
    @Suite struct EvictingItems {
        static func tree(_ tree: inout RemoteTree) {
            tree.addFile("file", content: RemoteContent("text of the file"), identifier: "file")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("one", in: "d", content: RemoteContent("1"), identifier: "one")
            tree.addDirectory("e", in: "d", identifier: "e")
            tree.addFile("two", in: "e", content: RemoteContent("22"), identifier: "two")
        }

        /// The error of an eviction; nil when there is none.
        private func refusal(_ mount: ProvidedMount, _ identifier: ItemIdentifier) async -> FileProviderError? {
            await failure { try await mount.host.evictItem(identifier: identifier) }
        }

        private func contents(_ mount: ProvidedMount, _ identifier: ItemIdentifier) throws -> ContentState? {
            try mount.host.replica.database.item(identifier)?.inode.content
        }

        @Test("E1, E2 and E3 (EVICT-1) a file loses its local content, and its space is free when the call returns")
        func e1ToE3() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["file"]).output == "text of the file")
                let number = try #require(try mount.host.replica.database.item("file")).inode.number
                let content = mount.host.replica.directory.appending("contents").appending("\(number)").string
                #expect(
                    await eventually { (try? mount.host.replica.database.inode(number)?.content) == .materialized })
                #expect(await eventually { !mount.host.isOpen(number) })
                #expect(FileManager.default.fileExists(atPath: content))
                #expect(await refusal(mount, "file") == nil)
                #expect(!FileManager.default.fileExists(atPath: content))
                #expect(try contents(mount, "file") == .dataless)
                #expect(await refusal(mount, "file") == nil, "again is a success")
                #expect(try await Command.run("cat", mount["file"]).output == "text of the file")
            }
        }

        @Test("E4 (EVICT-5) a file with local changes is not touched") func e4() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                mount.provider.faults.fail(.modify, with: FileProviderError(.insufficientQuota), times: nil)
                #expect(try await Command.shell("echo more >> \"$1\"", mount["file"]).status == 0)
                #expect(await eventually { await refusal(mount, "file")?.code == .unsyncedEdits })
                #expect(try await Command.run("cat", mount["file"]).output == "text of the filemore\n")
                mount.provider.faults.clear()
                try await mount.host.engine.retry()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                // The kernel tells of a close a moment after it.
                let number = try #require(try mount.host.replica.database.item("file")).inode.number
                #expect(await eventually { !mount.host.isOpen(number) })
                // Immediately after the provider has it.
                #expect(await refusal(mount, "file") == nil)
                #expect(try await Command.run("cat", mount["file"]).output == "text of the filemore\n")
            }
        }

        @Test("E5 (EVICT-2) a directory goes with all below it, and is listed again") func e5() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["d/one"], mount["d/e/two"]).output == "122")
                // What a reader has got is recorded a moment later.
                for file in ["one", "two"] as [ItemIdentifier] {
                    #expect(await eventually { (try? contents(mount, file)) == .materialized }, "\(file)")
                }
                #expect(await eventually { await refusal(mount, "d") == nil })
                for identifier in ["d", "one", "e", "two"] as [ItemIdentifier] {
                    #expect(try contents(mount, identifier) == .dataless, "\(identifier)")
                }
                let local = mount.host.replica.directory.appending("contents").string
                #expect(try FileManager.default.contentsOfDirectory(atPath: local).isEmpty)
                let listings = mount.provider.log.count(of: .enumerate, "d")
                #expect(try await Command.run("ls", mount["d"]).output == "e\none\n")
                #expect(mount.provider.log.count(of: .enumerate, "d") > listings)
                #expect(try await Command.run("cat", mount["d/e/two"]).output == "22")
            }
        }

        @Test("E5 (EVICT-2) a directory that holds what is never uploaded stays listed, and is named; all else goes")
        func e5StaysListed() async throws {
            try await ProvidedMount.run(options: ProvidedMount.trashing, Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["d/one"], mount["d/e/two"]).output == "122")
                try mount.host.trashItem(withIdentifier: "file")
                #expect(try await mount.isSynced())
                #expect(try await Command.shell("echo lock > \"$1\"", mount["d/.~lock.one#"]).status == 0)
                let database = mount.host.replica.database
                let number = try #require(try database.item("d")).inode.number
                for top in [number, .root] {
                    #expect(
                        await eventually {
                            let report = try? await mount.host.engine.evict(top, isStrict: true)
                            return report?.refusals.isEmpty == true && report?.stillListed == [number]
                        }, "inode \(top)")
                }
                #expect(try contents(mount, "d") == .materialized)
                #expect(try contents(mount, "one") == .dataless && contents(mount, "e") == .dataless)
                #expect(await refusal(mount, "d") == nil)
                #expect(try await Command.run("cat", mount["d/.~lock.one#"]).output == "lock\n")
                #expect(try await Command.run("rm", mount["d/.~lock.one#"]).status == 0)
                #expect(await refusal(mount, "d") == nil)
                #expect(try contents(mount, "d") == .dataless)
            }
        }

        @Test("E6 (EVICT-2) a child that refuses stops it, and is named") func e6() async throws {
            try await ProvidedMount.run { tree in
                Self.tree(&tree)
                // They come after the one that refuses, in the order in which the directories are evicted.
                tree.addFile("three", in: "e", content: RemoteContent("333"), identifier: "three")
                tree.addFile("last", in: "d", content: RemoteContent("last"), identifier: "last")
            } _: { mount async throws in
                let files = ["d/one", "d/e/two", "d/e/three", "d/last"].map { mount[$0] }
                #expect(try await Command(["cat"] + files).run().output == "122333last")
                // What a reader has got is recorded a moment later.
                for file in ["one", "two", "three", "last"] as [ItemIdentifier] {
                    #expect(await eventually { (try? contents(mount, file)) == .materialized }, "\(file)")
                }
                mount.provider.faults.fail(.modify, of: "two", with: FileProviderError(.insufficientQuota), times: nil)
                #expect(try await Command.shell("echo more >> \"$1\"", mount["d/e/two"]).status == 0)
                #expect(
                    await eventually {
                        let error = await refusal(mount, "d")
                        let child = error?.underlyingErrors.first as? FileProviderError
                        return error?.code == .nonEvictableChildren && child?.code == .unsyncedEdits
                            && child?.itemIdentifier == "two"
                    })
                #expect(try contents(mount, "d") == .materialized && contents(mount, "e") == .materialized)
                #expect(try contents(mount, "one") == .dataless, "what came before was evicted already")
                for name in ["two", "three", "last"] as [ItemIdentifier] {
                    #expect(try contents(mount, name) == .materialized, "\(name)")
                }
                mount.provider.faults.clear()
            }
        }

        @Test("E8 (EVICT-3) an open file refuses with EBUSY") func e8() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["file"]).output == "text of the file")
                #expect(await eventually { (try? contents(mount, "file")) == .materialized })
                let number = try #require(try mount.host.replica.database.item("file")).inode.number
                #expect(await eventually { !mount.host.isOpen(number) })
                let holder = try await BackgroundProgram("sh", "-c", "exec sleep 60 <\"$1\"", "-", mount["file"])
                defer { holder.kill() }
                #expect(await eventually { mount.host.isOpen(number) })
                let error = await refusal(mount, "file")
                #expect(error?.code == .posix && error?.errno == .resourceBusy)
                #expect(try contents(mount, "file") == .materialized)
                holder.kill()
                #expect(await eventually { await refusal(mount, "file") == nil })
            }
        }

        @Test("E8 (EVICT-3) a directory that a process has open is evicted, and the process reads it on")
        func e8Directory() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("ls", "-R", mount["d"]).status == 0)
                let outcome = try await Command.run(
                    "python3", "-c",
                    """
                    import os, sys
                    handle = os.open(sys.argv[1], os.O_RDONLY)
                    os.setxattr(sys.argv[1], "user.yonder.evict", b"1")
                    print(os.getxattr(sys.argv[1], "user.yonder.content").decode())
                    print(*sorted(os.listdir(handle)))
                    """, mount["d"])
                #expect(outcome.output == "dataless\ne one\n", "\(outcome.errors)")
                // The kernel may have answered from its cache, just before it was told to forget that.
                #expect(
                    try await eventually {
                        _ = try await Command.run("ls", mount["d"])
                        return mount.provider.log.count(of: .enumerate, "d") > 1
                    })
            }
        }

        @Test("E9 a file with several hard links refuses with EMLINK") func e9() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("ln", mount["file"], mount["other"]).status == 0)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(
                    await eventually {
                        let error = await refusal(mount, "file")
                        return error?.code == .posix && error?.errno == .tooManyLinks
                    })
                #expect(try contents(mount, "file") == .materialized)
                #expect(try await Command.run("rm", mount["other"]).status == 0)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(await eventually { await refusal(mount, "file") == nil })
            }
        }

        @Test("E10 what is not known, not listed yet or deleted is noSuchItem, and the provider is not asked for it")
        func e10() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["file"]).status == 0)
                // What a reader has got is recorded a moment later.
                #expect(await eventually { (try? contents(mount, "file")) == .materialized })
                mount.provider.log.clear()
                #expect(await refusal(mount, "nothing")?.code == .noSuchItem)
                #expect(await refusal(mount, "two")?.code == .noSuchItem, "the remote has it, but no process listed it")
                #expect(mount.provider.log.count(of: .item, "nothing") == 0)
                #expect(mount.provider.log.count(of: .item, "two") == 0)
                #expect(try contents(mount, "file") == .materialized, "nothing else is evicted")
                // Nor is there anything on disk of what an evicted directory contained.
                #expect(try await Command.run("ls", "-R", mount["d"]).status == 0)
                #expect(await eventually { await refusal(mount, "d") == nil })
                #expect(try contents(mount, "one") == .dataless && contents(mount, "e") == .dataless)
                mount.provider.log.clear()
                for identifier in ["one", "e", "two"] as [ItemIdentifier] {
                    #expect(await refusal(mount, identifier)?.code == .noSuchItem, "\(identifier)")
                    let download = await failureCode {
                        try await mount.host.requestDownloadForItem(withIdentifier: identifier)
                    }
                    #expect(download == .noSuchItem, "\(identifier)")
                    let modification = await failureCode {
                        try mount.host.requestModification(
                            of: .contentModificationDate, forItemWithIdentifier: identifier)
                    }
                    #expect(modification == .noSuchItem, "\(identifier)")
                }
                #expect(mount.provider.log.count(of: .fetch) == 0)
                for identifier in ["d", "e"] as [ItemIdentifier] {
                    #expect(mount.provider.log.count(of: .enumerate, identifier) == 0, "\(identifier)")
                }
                #expect(try contents(mount, "d") == .dataless)
                #expect(try await Command.run("cat", mount["d/one"]).output == "1")
                #expect(try await Command.run("rm", mount["file"]).status == 0)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(await refusal(mount, "file")?.code == .noSuchItem)
            }
        }

        @Test("E11 the siblings work: a download, whole and in part, and a modification on request")
        func e11() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                Self.tree(&tree)
                tree.addFile("big", content: .pattern(size: 64 << 20, seed: 1), identifier: "big")
            } _: { mount async throws in
                try await mount.host.requestDownloadForItem(withIdentifier: "file")
                #expect(try contents(mount, "file") == .materialized)
                try await mount.host.requestDownloadForItem(withIdentifier: "big", requestedRange: 0..<4096)
                #expect(await eventually { (try? contents(mount, "big")) == .partial })
                let ranges = mount.provider.log.calls(of: .fetch, "big").compactMap(\.range)
                #expect(ranges.contains { $0.contains(0) } && ranges.allSatisfy { $0.count < 64 << 20 }, "\(ranges)")
                try await mount.host.requestDownloadForItem(withIdentifier: "d")
                #expect(try contents(mount, "d") == .materialized)
                #expect(try contents(mount, "e") == .dataless, "one level")
                try mount.host.requestModification(of: .contentModificationDate, forItemWithIdentifier: "file")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                let sent = mount.provider.log.calls(of: .modify, "file")
                #expect(sent.count == 1 && sent.first?.fields?.contains(.contentModificationDate) == true)
                let error = #expect(throws: FileProviderError.self) {
                    try mount.host.requestModification(of: .contents, forItemWithIdentifier: "one")
                }
                #expect(error?.code == .ubiquitousFileUnavailable)
            }
        }
    }
}

extension DomainHost {
    fileprivate func isOpen(_ number: InodeNumber) -> Bool { openInodes.isOpen(number) }
}
