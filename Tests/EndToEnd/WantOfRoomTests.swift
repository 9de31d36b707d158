import Syscalls
import SystemPackage
import Testing

@testable import Daemon

/// Domains that found no room on the disk are known to the next worker.
@Suite struct WantOfRoomTests {
    private func descriptor(of mark: MountedAgainMark) throws -> FileDescriptor {
        try mark.file.use { file in
            try FileDescriptor.open(FilePath("/proc/self/fd/\(file.rawValue)"), .readWrite, options: .closeOnExec)
        }
    }

    @Test("MOUNT-7: the next daemon knows which domains found no room") func isInherited() throws {
        let mark = try MountedAgainMark()
        #expect(try mark.withoutRoom.isEmpty)
        var all: [String: WantOfRoom] = [:]
        for name in ["a", "\u{e4} b", "c"] { all[name] = WantOfRoom(reason: "\(name): full", available: 7) }
        try mark.write(all)
        let next = try #require(MountedAgainMark(inherited: try descriptor(of: mark)))
        #expect(try next.withoutRoom == all)
        // Shorter than before.
        all["a"] = nil
        try next.write(all)
        #expect(try mark.withoutRoom == all)
        try next.write([:])
        #expect(try mark.withoutRoom.isEmpty)
    }

    @Test("MOUNT-7: a mark of a Yonder that knew less is read, and a broken one is not empty")
    func ofOthers() throws {
        let mark = try MountedAgainMark()
        func write(_ text: String) throws {
            let bytes = Array(text.utf8)
            try mark.file.use { file throws(Errno) in try file.writeAll(bytes.span.bytes, at: 0) }
        }
        try write(#"{"a": {"reason": "full", "available": 7, "other": 1}}"#)
        let want = try #require(try mark.withoutRoom["a"])
        #expect(want.reason == "full" && want.available == 7 && want.isFull && want.unfinished == 0)
        try mark.write(["a": want])
        #expect(try mark.withoutRoom == ["a": want])
        let broken = try MountedAgainMark()
        let bytes = Array(#"{"a": {"reason": "#.utf8)
        try broken.file.use { file throws(Errno) in try file.writeAll(bytes.span.bytes, at: 0) }
        #expect(throws: DecodingError.self) { try broken.withoutRoom }
    }

    @Test("MOUNT-7: a daemon that is killed while it writes which domains found no room leaves what was there")
    func isWrittenBeside() throws {
        let mark = try MountedAgainMark()
        var all: [String: WantOfRoom] = [:]
        for number in 0..<200 { all["\(number)"] = WantOfRoom(reason: "full", available: 7) }
        try mark.write(all)
        for _ in 0..<3 {
            // As if the last page of the write, which is the first, had not been written.
            let before = try mark.file.use { file throws(Errno) in try file.readBytes(at: 0, count: 4096) }
            try mark.write([:])
            try mark.file.use { file throws(Errno) in try file.writeAll(before.span.bytes, at: 0) }
            #expect(try mark.withoutRoom == all)
            all["\(all.count)"] = WantOfRoom(reason: "full", available: 7)
            try mark.write(all)
        }
    }

    @Test("MOUNT-7: the mark of a Yonder that wrote nothing in it is replaced") func ofOlder() throws {
        let nothing = try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec)
        #expect(MountedAgainMark(inherited: nothing) == nil)
    }

    @Test(
        "MOUNT-7: a domain is tried again with a megabyte more, or after five minutes",
        arguments: [
            (0, 1, false), (1 << 20, 1, false), (-5 << 20, 1, false), (1 << 20 + 1, 1, true), (0, 299, false),
            (-7, 301, true),
        ]
            as [(Int, Int, Bool)])
    func whenTried(more: Int, seconds: Int, isTried: Bool) {
        let want = WantOfRoom(reason: "full", available: 100 << 20)
        let available = UInt64(Int(want.available) + more)
        #expect(Domains.isWorthTrying(want, available, at: want.triedAt + .seconds(seconds)) == isTried)
    }

    @Test("MOUNT-7: a daemon that waits for room looks for it less and less often, but once a minute")
    func pauses() {
        var (pause, time, looks) = (Domains.shortestPauseForRoom, Duration.zero, 0)
        while time < .seconds(3600) {
            #expect(pause <= .seconds(60))
            (time, looks) = (time + pause, looks + 1)
            pause = Domains.pauseForRoom(after: pause)
        }
        #expect(looks < 80)
    }

    @Test("MOUNT-7: a domain that found no room is also tried again when a later attempt fails for another reason")
    func otherReasons() throws {
        for isWaiting in [false, true] {
            let want = WantOfRoom.after(Errno.networkDown, isFull: false, available: 7, isWaiting: isWaiting)
            #expect((want != nil) == isWaiting)
        }
        let full = try #require(WantOfRoom.after(Errno.noSpace, isFull: true, available: 7, isWaiting: false))
        #expect(Domains.text(for: full).contains("no room on the disk"))
        let other = try #require(WantOfRoom.after(Errno.networkDown, isFull: false, available: 7, isWaiting: true))
        let text = Domains.text(for: other)
        #expect(text.contains("\(Errno.networkDown)") && text.contains("every five minutes"))
        #expect(!text.contains("room"))
        // More room is no reason to try.
        for (seconds, isTried) in [(299, false), (301, true)] {
            let time = other.triedAt + .seconds(seconds)
            #expect(Domains.isWorthTrying(other, 100 << 20, at: time) == isTried)
        }
    }
}
