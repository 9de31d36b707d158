import FileProvider
import FileProviderTesting
import Replica
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Sync

@Suite("browsed directories") struct BrowsedDirectoriesTests {
    private let start = ContinuousClock.now

    private func number(_ value: Int64) -> InodeNumber { InodeNumber(rawValue: value) }

    /// The pauses after which a directory was compared for so long after one look.
    private func pauses(until end: Duration, lookingAgainAt again: Duration? = nil) -> [Duration] {
        var browsed = BrowsedDirectories()
        browsed.looked(into: number(7), at: start)
        var pauses: [Duration] = []
        var last = start
        var waits = again
        while let due = browsed.nextDue, due - start < end {
            if let moment = waits, due - start > moment {
                browsed.looked(into: number(7), at: start + moment)
                waits = nil
                continue
            }
            if !browsed.takeDue(at: due).isEmpty { pauses.append(due - last) }
            last = due
        }
        return pauses
    }

    @Test("CHANGE-9: what is looked at is compared soon, then less and less often, and not for ever") func fades() {
        let found = pauses(until: .seconds(3600))
        #expect(found.first == BrowsedDirectories.firstPause)
        #expect(zip(found, found.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(found.last.map { $0 <= BrowsedDirectories.longestPause } == true)
        #expect(found.reduce(.zero, +) <= BrowsedDirectories.memory + BrowsedDirectories.longestPause)
        #expect(found.count < 40)
    }

    @Test("CHANGE-10: a directory that was opened within five minutes is compared at least every ten seconds")
    func bound() {
        let found = pauses(until: BrowsedDirectories.memory)
        #expect(found.allSatisfy { $0 <= .seconds(10) })
        #expect(found.reduce(.zero, +) > BrowsedDirectories.memory - .seconds(10))
    }

    @Test(
        "CHANGE-10: a comparison that takes long takes a small part of the time, however often the directory is opened")
    func slowComparisons() {
        var browsed = BrowsedDirectories()
        var (now, count) = (start, 0)
        while now - start < .seconds(200) {
            browsed.looked(into: number(7), at: now)
            let due = browsed.takeDue(at: now)
            now += .seconds(1)
            guard !due.isEmpty else { continue }
            count += 1
            browsed.compared(due, took: .seconds(1), at: now)
        }
        #expect((8...11).contains(count), "\(count)")
    }

    @Test("CHANGE-9: another look makes it soon again") func again() {
        let found = pauses(until: .seconds(3600), lookingAgainAt: .seconds(100))
        #expect(found.count(where: { $0 <= BrowsedDirectories.firstPause * 2 }) >= 3)
    }

    @Test("CHANGE-9: who walks through everything is followed in the last places only") func walks() {
        var browsed = BrowsedDirectories()
        for value in 1...1000 {
            browsed.looked(into: number(Int64(value)), at: start + .milliseconds(value))
        }
        let due = browsed.takeDue(at: start + .seconds(10))
        #expect(due.count == BrowsedDirectories.most)
        #expect(due.last == number(1000))
    }

    @Test("CHANGE-9: where no directory is opened the pauses grow to minutes, and longer where a round takes long")
    func idle() {
        var pause = RefreshSchedule.pauseWhileBrowsing
        for _ in 0..<20 { pause = RefreshSchedule.pause(after: pause, isIdle: true, roundTook: .seconds(1)) }
        #expect(pause == RefreshSchedule.longestPause)
        #expect(
            RefreshSchedule.pause(after: pause, isIdle: false, roundTook: .seconds(1))
                == RefreshSchedule.pauseWhileBrowsing)
        #expect(RefreshSchedule.pause(after: pause, isIdle: false, roundTook: .seconds(30)) == .seconds(600))
    }

    @Test(
        "CHANGE-1: rounds that readers ask for, one after the other, come less and less often, but once a minute",
        arguments: [
            (50, 0, 1000), (50, 1, 2000), (50, 5, 32_000), (50, 6, 60_000), (50, 1000, 60_000), (9000, 5, 180_000),
        ]
            as [(Int, Int, Int)])
    func asked(took: Int, count: Int, pause: Int) {
        let found = RefreshSchedule.pause(beforeAskedAfter: count, roundTook: .milliseconds(took))
        #expect(found == .milliseconds(pause))
    }
}

extension EngineTests {
    @Suite("comparisons of single directories") struct BrowsedDirectoryComparisonTests {
        @Test("CHANGE-9: one directory alone shows what is new in it, and what went is looked for everywhere")
        func oneDirectory() async throws {
            try await EngineFixture.run(options: .with(\.changeFeed, false)) { tree in
                tree.addDirectory("one", identifier: "one")
                tree.addDirectory("two", identifier: "two")
                tree.addFile("file", in: "one", content: RemoteContent("x"), identifier: "file")
            } _: { fixture async throws in
                try await fixture.list("one")
                try await fixture.list("two")
                let one = try fixture.number("one")
                fixture.provider.change { $0.addFile("new", in: "one", content: RemoteContent("y")) }
                fixture.provider.log.clear()
                await fixture.engine.feed.compareOnly([one])
                #expect(try fixture.names(in: one).sorted() == ["file", "new"])
                #expect(fixture.provider.log.count(of: .enumerate) == 1)
                // A directory that has not changed costs a request, and writes nothing.
                var hasWritten = true
                // The database gets its free pages once, soon after it was opened.
                for _ in 0..<3 where hasWritten {
                    let before = try fixture.lastWrite
                    for _ in 0..<5 { await fixture.engine.feed.compareOnly([one]) }
                    hasWritten = try fixture.lastWrite != before
                }
                #expect(!hasWritten)
                fixture.provider.change { $0.move("file", to: "two") }
                await fixture.engine.feed.compareOnly([one])
                #expect(await eventually { (try? fixture.names(in: one)) == ["new"] })
                #expect(try fixture.names(in: fixture.number("two")) == ["file"])
            }
        }
    }
}

extension EngineFixture {
    /// When the database's log was written last.
    fileprivate var lastWrite: FileMoment {
        get throws { try FileStatus(at: replica.directory.appending("replica.sqlite-wal")).modified }
    }
}
