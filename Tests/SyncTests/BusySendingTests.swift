import FileProvider
import FileProviderTesting
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica
@testable import Sync

extension EngineTests {
    /// What is sent while programs go on changing files.
    @Suite(.tags(.timing)) struct BusySendingTests {
        @Test("SEND-4: an item that is left alone is sent within its delay while others change")
        func sentWhileOthersChange() async throws {
            try await Machine.run(isInteractive: false) { machine async throws in
                try await machine.write("first", to: "first")
                let start = ContinuousClock.now
                var number = 0
                while machine.provider.tree.identifier(at: "first") == nil, .now - start < .seconds(8) {
                    number += 1
                    try await machine.write("\(number)", to: "n\(number)")
                    try await Task.sleep(for: .milliseconds(30))
                }
                #expect(machine.provider.tree.identifier(at: "first") != nil)
                #expect(ContinuousClock.now - start < .seconds(5))
            }
        }

        @Test("SEND-4: a program that makes files all the time has most of them on the remote when it ends")
        func mostFilesArriveMeanwhile() async throws {
            try await Machine.run(isInteractive: false) { machine async throws in
                let start = ContinuousClock.now
                var number = 0
                while .now - start < .seconds(4) {
                    number += 1
                    try await machine.write("\(number)", to: "n\(number)")
                    try await Task.sleep(for: .milliseconds(25))
                }
                let arrived = machine.provider.tree.entries().count
                #expect(arrived > number / 4, "\(arrived) of \(number)")
            }
        }

        @Test("SEND-11: what a caller waits for is sent before all others, and its directory before it")
        func whatIsWaitedForIsFirst() async throws {
            try await Machine.run(options: .with(\.concurrentCalls, 1), isInteractive: false) { machine async throws in
                machine.provider.faults.delay(.create, by: .milliseconds(50))
                machine.engine.pause(.user)
                for number in 0..<100 { try await machine.write("\(number)", to: "n\(number)") }
                try await machine.makeDirectory("new")
                try await machine.write("important", to: "new/letter")
                machine.engine.pause(nil)
                try await machine.engine.send(try await machine.number("new/letter"))
                #expect(machine.provider.tree.entries()["new/letter"]?.content == "important")
                #expect(machine.provider.log.count(of: .create) < 50)
            }
        }

        @Test("SEND-11: what was changed before the clock was set back is waited for") func theClockWasSetBack()
            async throws
        {
            try await Machine.run { machine async throws in
                try await machine.write("text", to: "n")
                let row = try await machine.item("n").id
                try await machine.replica.database.write { db in
                    try db.run("UPDATE item SET pendingSince = pendingSince + 3600000000000 WHERE id = ?", [row])
                }
                #expect(try await !machine.engine.waitUntilSynced(within: .milliseconds(50)))
                #expect(
                    try await !machine.engine.waitUntilSynced(
                        below: machine.number("n"), within: .milliseconds(50)))
            }
        }

        @Test("SEND-11: what is changed after a wait began is not waited for, although the clock was set back before")
        func changedAfterTheClockWasSetBack() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine async throws in
                try await machine.write("old", to: "a")
                try await machine.remove("d/x")
                let row = try await machine.item("a").id
                try await machine.replica.database.write { db in
                    for table in ["item", "deletion"] {
                        try db.run("UPDATE \(table) SET pendingSince = pendingSince + 3600000000000", [])
                    }
                }
                let database = machine.replica.database
                let start = try await database.timeAfterAllPending()
                #expect(start <= FileTimestamp.now)
                #expect(try database.hasPending(since: start))
                #expect(try database.isPending(.item(row), since: start))
                try await machine.write("new", to: "b")
                let new = try await machine.item("b").id
                for operation in try await machine.operations() where operation != .modification(row: new) {
                    await machine.engine.runAlone(operation)
                }
                // The time of the directory is sent after its children.
                for operation in try await machine.operations() where operation != .modification(row: new) {
                    await machine.engine.runAlone(operation)
                }
                #expect(machine.provider.tree.entries()["a"]?.content == "old")
                #expect(machine.provider.tree.identifier(at: "d/x") == nil)
                #expect(try !database.hasPending(since: start))
                #expect(try database.hasPending(since: FileTimestamp.now))
            }
        }

        @Test("SEND-1: a conflict copy has been pending since its file was changed, so that a wait ends with it sent")
        func aConflictCopyIsWaitedFor() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine async throws in
                try await machine.write("mine", to: "a")
                let since = try #require(try machine.replica.pendingItem(try await machine.item("a").id)).state.since
                machine.provider.changeSilently { $0.write(RemoteContent("theirs"), to: "a") }
                machine.provider.faults.fail(.create, with: FileProviderError(.timedOut), times: nil)
                try await machine.send(passes: 1)
                let copy = try #require(try machine.replica.database.conflictCopies().first?.item)
                #expect(try machine.replica.pendingItem(copy.id)?.state.since == since)
            }
        }

        @Test("WRITE-1: a date that is set while an earlier one is refused is sent", arguments: [false, true])
        func aNewerValueIsNotHeld(isSetMeanwhile: Bool) async throws {
            var options = InMemoryProvider.Options()
            options.holds.remove(.contentModificationDate)
            try await Machine.run(options: options, fill: ScriptRun.fill) { machine async throws in
                try await machine.listAll()
                let gate = machine.provider.faults.hold(.modify, times: 1)
                try await machine.setTime(of: "a", to: FileTimestamp(seconds: 1_000))
                async let sending: Void = machine.send(passes: 1)
                #expect(await eventually { gate.waiting == 1 })
                if isSetMeanwhile { try await machine.setTime(of: "a", to: FileTimestamp(seconds: 2_000)) }
                gate.open()
                try await sending
                let item = try await machine.item("a")
                #expect(item.changedFields.contains(.contentModificationDate) == isSetMeanwhile)
                #expect(item.heldFields.contains(.contentModificationDate) == !isSetMeanwhile)
            }
        }

        @Test("ERROR-4: a date is held no longer once the remote has the same") func aDateThatTheRemoteHasIsNotHeld()
            async throws
        {
            var options = InMemoryProvider.Options()
            options.holds.remove(.contentModificationDate)
            try await Machine.run(options: options, fill: ScriptRun.fill) { machine async throws in
                try await machine.listAll()
                let (whole, cut) = (FileTimestamp(seconds: 1_000, nanoseconds: 5), FileTimestamp(seconds: 1_000))
                try await machine.setTime(of: "a", to: whole)
                try await machine.drain()
                machine.provider.change { $0.edit("a") { $0.contentModificationDate = cut } }
                try await machine.ingest()
                #expect(try await machine.item("a").truncatedDate == cut)
                machine.provider.change { $0.edit("a") { $0.contentModificationDate = whole } }
                try await machine.ingest()
                let item = try await machine.item("a")
                #expect(item.truncatedDate == nil && !item.heldFields.contains(.contentModificationDate))
                #expect(item.inode.modifiedAt == whole)
            }
        }

        @Test("WRITE-12: a date that the remote has cut is shown until the remote has another", arguments: ["a", "d"])
        func aNewerDateThanTheCutOneIsShown(path: String) async throws {
            var options = InMemoryProvider.Options()
            options.holds.remove(.contentModificationDate)
            try await Machine.run(options: options, fill: ScriptRun.fill) { machine async throws in
                try await machine.listAll()
                let identifier = try #require(machine.provider.tree.identifier(at: path))
                let whole = FileTimestamp(seconds: 1_000, nanoseconds: 5)
                try await machine.setTime(of: path, to: whole)
                try await machine.drain()
                // What a remote that stores no dates says of its own, and what one that cuts them answers, is no news.
                for seconds: Int64 in [5_000, 1_000, 1_000] {
                    machine.provider.change {
                        $0.edit(identifier) { $0.contentModificationDate = FileTimestamp(seconds: seconds) }
                    }
                    try await machine.ingest()
                    let item = try await machine.item(path)
                    #expect(item.inode.modifiedAt == whole)
                    #expect(item.heldFields.contains(.contentModificationDate))
                }
                let newer = FileTimestamp(seconds: 2_000)
                machine.provider.change { $0.edit(identifier) { $0.contentModificationDate = newer } }
                try await machine.ingest()
                let item = try await machine.item(path)
                #expect(item.inode.modifiedAt == newer)
                #expect(!item.heldFields.contains(.contentModificationDate))
            }
        }

        @Test("WRITE-12: a date that is held goes with the content that it was set on")
        func aHeldDateEndsWithItsContent() async throws {
            var options = InMemoryProvider.Options()
            options.holds.remove(.contentModificationDate)
            try await Machine.run(options: options, fill: ScriptRun.fill) { machine async throws in
                try await machine.listAll()
                try await machine.setTime(of: "a", to: FileTimestamp(seconds: 1_000))
                try await machine.drain()
                #expect(try await machine.item("a").heldFields.contains(.contentModificationDate))
                machine.provider.change { $0.write(RemoteContent("theirs"), to: "a") }
                try await machine.ingest()
                let item = try await machine.item("a")
                #expect(item.inode.modifiedAt == item.base.modifiedAt)
                #expect(!item.heldFields.contains(.contentModificationDate))
            }
        }

        @Test("S3-4: a mode that could not be set on what was there is sent with new content")
        func aHeldModeIsSentWithContent() async throws {
            var options = InMemoryProvider.Options()
            options.holds.remove(.permissions)
            try await Machine.run(options: options, fill: ScriptRun.fill) { machine async throws in
                try await machine.listAll()
                try await machine.setPermissions(of: "a", to: 0o600)
                try await machine.drain()
                #expect(try await machine.item("a").heldFields.contains(.permissions))
                machine.provider.log.clear()
                try await machine.write("new", to: "a")
                try await machine.drain()
                #expect(machine.provider.log.calls(of: .modify).contains { $0.fields?.contains(.permissions) == true })
            }
        }

        @Test("NAME-11: a new item that failed is sent at once under another name, without its old failure")
        func aRenamedItemIsTriedAtOnce() async throws {
            try await Machine.run { machine async throws in
                machine.provider.faults.fail(
                    .create, with: FileProviderError(.cannotSynchronize, "not this name"), times: 1)
                try await machine.write("text", to: "n")
                try await machine.send(passes: 1)
                let row = try await machine.item("n").id
                #expect(try machine.replica.pendingItem(row)?.state.nextTry != nil)
                try await machine.rename("n", to: "m")
                #expect(try machine.replica.pendingItem(row)?.state.nextTry == nil)
                #expect(try machine.replica.database.failure(of: try await machine.number("m")) == nil)
            }
        }

        @Test("SEND-4: an item that is changed again and again is sent after the longest delay")
        func anItemThatIsNeverLeftAloneIsSent() async throws {
            try await Machine.run { machine async throws in
                try await machine.write("one", to: "n")
                try await Task.sleep(for: .milliseconds(150))
                try await machine.write("two", to: "n")
                let row = try await machine.item("n").id
                let pending = try #require(try machine.replica.pendingItem(row))
                var planner = Planner()
                let now = pending.item.inode.changedAt.advanced(by: .milliseconds(100))
                guard case .notBefore = planner.readiness(of: pending, at: now) else {
                    return #expect(Bool(false), "it was changed just now, and is sent")
                }
                planner.delays.longestDelay = .milliseconds(200)
                guard case .ready = planner.readiness(of: pending, at: now) else {
                    return #expect(Bool(false), "it is not sent though it has waited for the longest delay")
                }
                // The two delays are those that users are told of.
                #expect(Planner().delays.longestDelay == .seconds(30))
                #expect(Planner().delays.longestWrittenDelay < .seconds(60))
            }
        }

        @Test("SEND-4: a file that is never left alone is sent as it was at one moment, though it is written meanwhile")
        func aFileThatIsNeverLeftAloneIsCopied() async throws {
            try await Machine.run { machine async throws in
                let number = try await machine.open("n")
                try machine.put("11111111", into: number)
                let copied = try await ContentSnapshot.open(
                    number, in: machine.replica, isBeingWritten: true, progress: { _ in })
                let direct = try await ContentSnapshot.open(number, in: machine.replica, progress: { _ in })
                try machine.put("22222222", into: number)
                #expect(try copied.source.read(at: 0, count: 100) == Array("11111111".utf8))
                #expect(throws: ContentSnapshot.Written.self) { _ = try direct.source.read(at: 0, count: 100) }
                // What was written since differs from what was sent, and is sent later.
                #expect(copied.stamp == nil)
                #expect(try machine.replica.contentStatus(of: number).stamp != direct.stamp)
                try await machine.close(number)
            }
        }

        @Test("SEND-5: a file that was sent from a copy is sent again after it was left alone")
        func aFileThatIsSentFromACopyIsSentAgain() async throws {
            var delays = UploadDelays()
            delays.longestWrittenDelay = .seconds(2)
            try await Machine.run(isInteractive: false, uploadDelays: delays) { machine async throws in
                let number = try await machine.open("n")
                try machine.put("11111111", into: number)
                try machine.engine.noteWrittenFiles()
                #expect(
                    await eventually(within: .seconds(10)) {
                        machine.provider.tree.entries()["n"]?.content == "11111111"
                    })
                // Whether a page fault was under way when the copy was taken is not known.
                func fields() throws -> ItemFields? {
                    try machine.replica.database.item(ofInode: number)?.changedFields
                }
                #expect(await eventually { (try? machine.replica.database.item(ofInode: number)?.identifier) != nil })
                #expect(try fields()?.contains(.contents) == true)
                #expect(await eventually(within: .seconds(20)) { (try? fields()) == [] })
                let again = machine.provider.log.calls(of: .modify)
                #expect(again.contains { $0.name == "n" && $0.fields?.contains(.contents) == true })
                try await machine.close(number)
            }
        }

        @Test(
            "SEND-5: what a program writes through a mapping after the bytes were taken is noticed",
            arguments: [false, true])
        func writesThroughAMappingAreNoticed(_ isBeingWritten: Bool) async throws {
            try await Machine.run { machine async throws in
                let number = try await machine.open("n")
                try machine.put("00000000", into: number)
                let path = machine.replica.contents.path(of: number).string
                let writer = try await BackgroundProgram(
                    "python3", "-c",
                    """
                    import mmap, sys
                    with open(sys.argv[1], 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
                        count = 0
                        while True:
                            count += 1
                            m[0:8] = b'%08d' % count
                    """, path)
                defer { writer.kill() }
                func bytes() throws -> [UInt8] {
                    let file = try machine.replica.openContent(of: number)
                    defer { try? file.close() }
                    return try file.readBytes(at: 0, count: 8)
                }
                #expect(await eventually { (try? bytes()) != Array("00000000".utf8) })
                for _ in 0..<(isBeingWritten ? 50 : 5) {
                    let taken = try? await ContentSnapshot.open(
                        number, in: machine.replica, isBeingWritten: isBeingWritten, progress: { _ in })
                    // It is written too often: nothing is sent.
                    guard let taken else { continue }
                    let first = try taken.source.descriptor.readBytes(at: 0, count: 8)
                    #expect(await eventually { (try? bytes()) != first })
                    // The confirmation compares the stamps.
                    #expect(try machine.replica.contentStatus(of: number).stamp != taken.stamp)
                }
                writer.kill()
                #expect(await writer.ends())
                try await machine.close(number)
            }
        }

        @Test("SEND-4: a file that stays open and was written just now is due when its longest delay is over")
        func anOpenFileIsDue() async throws {
            try await Machine.run { machine async throws in
                let number = try await machine.open("n")
                try machine.put("11111111", into: number)
                try machine.engine.noteWrittenFiles()
                let row = try await machine.item("n").id
                let pending = try #require(try machine.replica.pendingItem(row))
                var planner = Planner()
                planner.delays.delay = .zero
                let now = pending.item.inode.changedAt.advanced(by: .seconds(2))
                guard case .notBefore = planner.readiness(of: pending, at: now) else {
                    return #expect(Bool(false), "it was written two seconds ago, and is sent")
                }
                planner.delays.longestWrittenDelay = .seconds(1)
                guard case .ready = planner.readiness(of: pending, at: now) else {
                    return #expect(Bool(false), "it is not sent though it has waited for the longest delay")
                }
                try await machine.close(number)
            }
        }

        @Test(
            "SEND-4: a large file that is written all the time is due after a longer delay, and sent as it was at one moment"
        )
        func aLargeFileThatIsNeverLeftAloneIsSent() async throws {
            var delays = UploadDelays()
            #expect(delays.longestLargeDelay == .seconds(600))
            (delays.longestLargeDelay, delays.longestWrittenDelay) = (.seconds(3), .milliseconds(1))
            try await Machine.run(isInteractive: false, uploadDelays: delays) { machine async throws in
                let number = try await machine.open("n")
                let size = UploadDelays.smallFile + 1
                let path = machine.replica.contents.path(of: number)
                let file = try FileDescriptor.open(path, .readWrite)
                defer { try? file.close() }
                try file.resize(to: size)
                let start = ContinuousClock.now
                var count = 0
                while machine.provider.tree.identifier(at: "n") == nil, .now - start < .seconds(40) {
                    count += 1
                    // Both ends, one after the other: a copy that was torn would have two numbers.
                    let text = Array(String(repeating: "\(count % 10)", count: 8).utf8)
                    _ = try file.writeAll(toAbsoluteOffset: 0, text)
                    _ = try file.writeAll(toAbsoluteOffset: size - 8, text)
                    if count == 1 { try machine.engine.noteWrittenFiles() }
                    try await Task.sleep(for: .milliseconds(700))
                }
                #expect(ContinuousClock.now - start > .seconds(2))
                let content = try #require(machine.provider.tree.entries()["n"]?.content)
                #expect(content.utf8.count == size)
                #expect(Array(content.utf8.prefix(8)) == Array(content.utf8.suffix(8)))
                try await machine.close(number)
            }
        }

        @Test("SEND-2: a file that stays open is sent with the date that the mount shows, and its date not once more")
        func anOpenFileIsSentWithItsDate() async throws {
            try await Machine.run { machine async throws in
                let number = try await machine.open("n")
                try machine.put("text", into: number)
                // The kernel's slow clock may lag behind the time of the creation.
                let made = try await machine.record("n").modifiedAt
                let lagging = FileTimestamp(nanosecondsSince1970: made.nanosecondsSince1970 - 3_000_000)
                try machine.replica.contents.path(of: number)
                    .setModificationTime(to: FileMoment(seconds: lagging.seconds, nanoseconds: lagging.nanoseconds))
                try machine.engine.noteWrittenFiles()
                try await machine.send()
                let shown = try await machine.record("n").modifiedAt
                #expect(shown > made)
                let identifier = try #require(machine.provider.tree.identifier(at: "n"))
                #expect(machine.provider.tree[identifier]?.contentModificationDate == shown)
                #expect(machine.provider.log.count(of: .create) == 1)
                #expect(machine.provider.log.count(of: .modify, identifier) == 0)
                #expect(try await machine.item("n").changedFields == [])
                try await machine.close(number)
            }
        }

        @Test("SEND-4: what was written to a file that stays open is sent without a request")
        func anOpenFileIsSent() async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine async throws in
                let number = try await machine.open("a")
                try machine.put("appended", into: number)
                #expect(
                    await eventually(within: .seconds(30)) {
                        machine.provider.tree.entries()["a"]?.content == "appended"
                    })
                try await machine.close(number)
            }
        }
    }
}
