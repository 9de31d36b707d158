import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// Space for fetches on a disk of which 100 bytes are left to local writes, and as many more to processes that wait.
@Suite struct CacheBudgetTests {
    /// A disk on which time passes only while a fetch waits for space.
    private final class Disk: ContentEvictor {
        struct State {
            var available: Int64
            /// How many bytes come back when a file is evicted; nil for none, and after that.
            var evictable: Int64?
            var passes = 0
            var looks = 0
            var waited = Duration.zero
            /// The folder whose files take 200 bytes.
            var withdrawn: FilePath?
            /// Whose files are evicted.
            var replica: Replica?
        }

        let state: Mutex<State>

        init(available: Int64, evictable: Int64? = nil) {
            state = Mutex(State(available: available, evictable: evictable))
        }

        var space: FreeSpace {
            let (available, withdrawn) = state.withLock { ($0.available, $0.withdrawn) }
            let isDeleted = withdrawn.map { Self.isEmpty($0) } ?? false
            return FreeSpace(available: available + (isDeleted ? 200 : 0), reserve: 100)
        }

        static func isEmpty(_ folder: FilePath) -> Bool {
            (try? FileManager.default.contentsOfDirectory(atPath: folder.string).isEmpty) ?? false
        }

        func change(by bytes: Int64) { state.withLock { $0.available += bytes } }

        func evictIfUnused(_ number: InodeNumber) async -> Int64? {
            if let replica = state.withLock(\.replica) {
                let evicted = try? await replica.evictFile(number, open: NothingOpen())
                state.withLock { $0.withdrawn = replica.directory.appending("withdrawn") }
                return evicted?.0
            }
            return state.withLock { state in
                guard let freed = state.evictable else { return nil }
                state.evictable = nil
                state.available += freed
                return freed
            }
        }

        func settleIdle() async { state.withLock { $0.passes += 1 } }
    }

    private let number = InodeNumber(rawValue: 9999)

    /// - Parameters:
    ///   - isRemoved: whether a file was removed that has its blocks still.
    ///   - isEvicted: whether the replica's files are evicted.
    ///   - look: called with the number of each look at the disk while a fetch waits.
    private func run(
        _ disk: Disk, isRemoved: Bool = false, isEvicted: Bool = false,
        look: @escaping @Sendable (Int) -> Void = { _ in },
        _ test: (CacheBudget, Warnings) async throws -> Void
    ) async throws {
        try await EngineFixture.run(fill: {
            $0.addFile("f", content: RemoteContent("content"), identifier: "f")
        }) { fixture in
            try await fixture.list()
            try await fixture.engine.materialize(try fixture.number("f"), request: fixture.request)
            let (replica, warnings) = (fixture.replica, fixture.engine.warnings)
            let budget = CacheBudget(
                replica: replica, accessTimes: AccessTimes(replica: replica), warnings: warnings,
                limits: CacheLimits(), freeSpace: { disk.space },
                pause: { duration in
                    let count = disk.state.withLock { state in
                        (state.looks, state.waited) = (state.looks + 1, state.waited + duration)
                        return state.looks
                    }
                    look(count)
                })
            if isEvicted { disk.state.withLock { $0.replica = replica } }
            if isRemoved {
                disk.state.withLock { $0.withdrawn = replica.directory.appending("withdrawn") }
                _ = try replica.change(open: fixture.open) { try $0.names.unlink("f", in: .root) }
                try #require(disk.space == FreeSpace(available: 50, reserve: 100))
            }
            try await test(budget, warnings)
        }
    }

    private func admit(
        _ bytes: Int64, to budget: CacheBudget, _ disk: Disk, isBackground: Bool = false
    ) async throws(FileProviderError) -> SpaceReservations.Reservation {
        try await budget.admit(bytes, for: number, isBackground: { isBackground }, evictor: disk)
    }

    private static func cancelThisTask() {
        withUnsafeCurrentTask { (task) -> Void in task?.cancel() }
    }

    enum Need: CaseIterable { case fetch, write, programs }

    @Test("WRITE-2: the blocks of what was removed are used before content is evicted", arguments: Need.allCases)
    func removed(_ need: Need) async throws {
        let disk = Disk(available: 50)
        try await run(disk, isRemoved: true) { budget, _ in
            switch need {
            case .fetch: try await admit(100, to: budget, disk).release()
            case .write: #expect(await budget.makeRoom(50, evictor: disk))
            case .programs:
                await budget.start(evictor: disk)
                budget.noteLocalChange()
                let isFree = await eventually { disk.space.shortage(of: 0) <= 0 }
                #expect(isFree)
                await budget.stop()
            }
            #expect(disk.state.withLock(\.passes) == 0)
        }
    }

    @Test("CACHE-3: a fetch gets the blocks of what was evicted for it without waiting") func evictedBlocks()
        async throws
    {
        let disk = Disk(available: 50)
        try await run(disk, isEvicted: true) { budget, _ in
            try await admit(100, to: budget, disk).release()
            #expect(disk.state.withLock(\.looks) == 0)
        }
    }

    @Test("CACHE-3: fetches that no process waits for leave a second reserve, and none waits for nothing")
    func margins() async throws {
        let disk = Disk(available: 300)
        try await run(disk) { budget, _ in
            try await admit(200, to: budget, disk).release()
            try await admit(100, to: budget, disk, isBackground: true).release()
            for (bytes, isBackground) in [(201, false), (101, true)] as [(Int64, Bool)] {
                let failure = await failure {
                    _ = try await admit(bytes, to: budget, disk, isBackground: isBackground)
                }
                #expect(failure?.errno == .noSpace)
            }
            #expect(disk.state.withLock(\.waited) == .zero)
            disk.state.withLock { $0.evictable = 1 }
            try await admit(201, to: budget, disk).release()
        }
    }

    @Test("CACHE-3: a fetch for which a process waits by now leaves only the first reserve") func promoted()
        async throws
    {
        let disk = Disk(available: 300)
        let isBackground = Mutex(true)
        try await run(disk, look: { _ in isBackground.withLock { $0 = false } }) { budget, _ in
            let other = try await admit(100, to: budget, disk)
            let space = try await budget.admit(
                50, for: number, isBackground: { isBackground.withLock(\.self) }, evictor: disk)
            #expect(disk.state.withLock(\.looks) == 1)
            space.release()
            other.release()
        }
    }

    @Test("CACHE-3: a fetch gets what another has reserved and not used") func releasedSpace() async throws {
        let disk = Disk(available: 300)
        let other = Mutex<SpaceReservations.Reservation?>(nil)
        try await run(disk, look: { if $0 == 3 { other.withLock(\.self)?.release() } }) { budget, _ in
            let first = try await admit(150, to: budget, disk)
            other.withLock { $0 = first }
            let second = try await admit(200, to: budget, disk)
            #expect(disk.state.withLock(\.looks) == 3)
            #expect(await failure { _ = try await admit(1, to: budget, disk) }?.errno == .noSpace)
            #expect(disk.state.withLock(\.waited) == .seconds(10) + .milliseconds(60))
            second.release()
            try await admit(200, to: budget, disk).release()
        }
    }

    @Test("CACHE-3: what another fetch has brought is evicted for the next one when it has ended") func filledSpace()
        async throws
    {
        let disk = Disk(available: 300)
        let other = Mutex<SpaceReservations.Reservation?>(nil)
        try await run(
            disk,
            look: { count in
                guard count <= 3 else { return }
                other.withLock(\.self)?.fill(50)
                disk.state.withLock { state in
                    state.available -= 50
                    if count == 3 { state.evictable = 50 }
                }
            }
        ) { budget, _ in
            let first = try await admit(150, to: budget, disk)
            other.withLock { $0 = first }
            try await admit(100, to: budget, disk).release()
            #expect(disk.state.withLock { $0.looks == 3 && $0.passes == 2 })
        }
    }

    @Test("CACHE-3: a fetch waits ten seconds for others that make no progress") func noProgress() async throws {
        let disk = Disk(available: 300)
        try await run(disk) { budget, _ in
            let other = try await admit(150, to: budget, disk)
            #expect(await failure { _ = try await admit(100, to: budget, disk) }?.errno == .noSpace)
            #expect(disk.state.withLock(\.waited) == .seconds(10))
            other.release()
        }
    }

    @Test("a fetch that is cancelled while it waits reserves nothing, and one that was cancelled before evicts nothing")
    func cancelled() async throws {
        let disk = Disk(available: 300)
        try await run(disk, look: { _ in Self.cancelThisTask() }) { budget, _ in
            let other = try await admit(150, to: budget, disk)
            let waiting = Task { await failure { _ = try await admit(100, to: budget, disk) } }
            #expect(await waiting.value?.code == .userCancelled)
            #expect(disk.state.withLock { $0.looks == 1 && $0.passes == 1 })
            let late = Task {
                Self.cancelThisTask()
                return await failure { _ = try await admit(100, to: budget, disk) }
            }
            #expect(await late.value?.code == .userCancelled)
            #expect(disk.state.withLock(\.passes) == 1)
            other.release()
            try await admit(200, to: budget, disk).release()
        }
    }

    @Test("CACHE-3: the warning of a full disk goes when there is space for what was refused, without another fetch")
    func warning() async throws {
        let disk = Disk(available: 150)
        try await run(disk) { budget, warnings in
            func isWarned() -> Bool {
                budget.withdrawWarningIfPossible()
                return warnings.texts.contains { $0.hasPrefix("the disk is full") }
            }
            func isRefused(_ bytes: Int64, isBackground: Bool = false) async -> Bool {
                let error = await failure { _ = try await admit(bytes, to: budget, disk, isBackground: isBackground) }
                return error?.errno == .noSpace
            }
            #expect(await isRefused(100))
            #expect(isWarned())
            // A process waits for this one: the second reserve need not be free.
            disk.change(by: 50)
            #expect(!isWarned())
            #expect(await isRefused(50, isBackground: true))
            #expect(isWarned())
            disk.change(by: 49)
            #expect(isWarned())
            disk.change(by: 1)
            #expect(!isWarned())
        }
    }
}
