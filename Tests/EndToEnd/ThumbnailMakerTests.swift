import Dispatch
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// What is asked of the remote for thumbnails, and when.
    @Suite struct ThumbnailMaking {
        @Test(
            "LIMIT-7: a file without a thumbnail is asked about again with other content, or when the remote was away")
        func asksOnce() async throws {
            let played = try PlayedScaler()
            defer { played.remove() }
            try await ProvidedMount.run(options: .with(\.thumbnails, [:]), listing: .root) { tree in
                tree.addFile("a.png", content: .pattern(size: 1 << 20, seed: 1), identifier: "a")
                tree.addFile("b.png", content: .pattern(size: 1 << 20, seed: 2), identifier: "b")
            } _: { mount async throws in
                let (maker, log, faults) = (try played.maker(of: mount), mount.provider.log, mount.provider.faults)
                let following = Task { [events = mount.host.engine.events] in await maker.follow(events) }
                defer { following.cancel() }
                faults.fail(.thumbnail, of: "b", with: FileProviderError(.malformedResponse), times: nil)
                func item(_ identifier: ItemIdentifier) throws -> ItemRecord {
                    try #require(try mount.host.replica.database.item(identifier))
                }
                func asked() async throws -> [Int] {
                    for identifier in ["a", "b"] as [ItemIdentifier] {
                        await maker.make(try item(identifier).inode.number)
                    }
                    return [log.count(of: .thumbnail, "a"), log.count(of: .thumbnail, "b")]
                }
                #expect(try await asked() == [1, 1])
                #expect(try await asked() == [1, 1])
                let old = try item("a").base.version.contentVersion
                mount.provider.change { $0.write(.pattern(size: 1 << 20, seed: 3), to: "a") }
                #expect(try await eventually { try item("a").base.version.contentVersion != old })
                // That no calls are made now is not remembered of the file.
                mount.host.engine.connection.pause(.user)
                #expect(try await asked() == [1, 1])
                mount.host.engine.connection.pause(nil)
                #expect(try await asked() == [2, 1])
                faults.failEverything(with: FileProviderError(.serverUnreachable))
                #expect(try await Command.run("cat", mount["a.png"]).status != 0)
                #expect(mount.host.engine.connection.state == .offline)
                faults.clear()
                #expect(await eventually(within: .seconds(20)) { mount.host.engine.connection.state == .online })
                #expect(try await eventually { try await asked() == [3, 2] })
                #expect(try await asked() == [3, 2])
                #expect(played.starts() == [])
            }
        }

        @Test("LIMIT-7: the end of a mount does not wait for the disk of the cache") func cancelling() async throws {
            let played = try PlayedScaler()
            defer { played.remove() }
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("a.png", content: .pattern(size: 1 << 20, seed: 1), identifier: "a")
            } _: { mount async throws in
                // The thread that needs the path of a file in the cache waits here, as for a slow disk.
                let (arrivals, gate) = (Counted(), DispatchSemaphore(value: 0))
                defer { gate.signal() }
                let maker = try played.maker(of: mount) {
                    arrivals.add()
                    gate.wait()
                    gate.signal()
                    return nil
                }
                let number = try #require(try mount.host.replica.database.item("a")).inode.number
                let making = Task { await maker.make(number) }
                #expect(await eventually { arrivals.count == 1 })
                let ended = Counted()
                Task {
                    await maker.cancel()
                    ended.add()
                }
                #expect(await eventually { ended.count == 1 })
                gate.signal()
                await making.value
            }
        }

        private final class Counted: Sendable {
            private let state = Mutex(0)

            var count: Int { state.withLock { $0 } }

            func add() { state.withLock { $0 += 1 } }
        }

        @Test(
            "LIMIT-7: a record that a picture has no thumbnail goes when that is made, and when the picture is downloaded"
        )
        func failures() async throws {
            let played = try PlayedScaler()
            defer { played.remove() }
            try await ProvidedMount.run(options: .with(\.thumbnails, ["a": played.image]), listing: .root) { tree in
                tree.addFile("a.png", content: .pattern(size: 1 << 20, seed: 1), identifier: "a")
                tree.addFile("b.png", content: .pattern(size: 1 << 20, seed: 2), identifier: "b")
            } _: { mount async throws in
                let (maker, cache) = (try played.maker(of: mount), try played.cache())
                let following = Task { [events = mount.host.engine.events] in await maker.follow(events) }
                defer { following.cancel() }
                let image = try #require(PNGFile(played.image))
                func record(_ identifier: ItemIdentifier) throws -> InodeNumber {
                    let item = try #require(try mount.host.replica.database.item(identifier))
                    let subject = ThumbnailCache.Subject(
                        mount.path.appending(item.name), modifiedAt: item.inode.modifiedAt.seconds)
                    try cache.store(["fail/program": image], of: subject)
                    return item.inode.number
                }
                func recorded() throws -> Int {
                    try FileManager.default.contentsOfDirectory(
                        atPath: cache.directory.appending("fail/program").string
                    ).count
                }
                let (first, _) = (try record("a"), try record("b"))
                #expect(try recorded() == 2)
                await maker.make(first)
                #expect(try recorded() == 1)
                #expect(try await Command.run("cat", mount["b.png"]).status == 0)
                #expect(try await eventually { try recorded() == 0 })
                await maker.cancel()
            }
        }
    }
}
