import FileProvider
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica

@Suite struct CoarseTimeTests {
    @Test("NAME-1: a time at the end of the range is cut like any other")
    func endsOfTheRange() {
        let (last, first) = (FileTimestamp(seconds: .max), FileTimestamp(seconds: .min))
        #expect(last.advanced(by: .seconds(2)) == last)
        #expect(first.advanced(by: .seconds(-2)) == first)
        #expect(first.advanced(by: .milliseconds(1)).nanosecondsSince1970 == Int64.min + 1_000_000)
        #expect(FileTimestamp(seconds: 5).advanced(by: .milliseconds(-1500)).nanosecondsSince1970 == 3_500_000_000)
        #expect(FileTimestamp(seconds: 5).advanced(by: .seconds(Int64.max)) == last)
        #expect(FileTimestamp(seconds: last.seconds).isTruncation(of: last))
    }

    @Test(
        "WRITE-1: on a file system with times of whole seconds a stamp is final when the file system gives another one",
        .enabled("only root can mount") { FUSEAvailability.isRoot })
    func wholeSeconds() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let place = try directory.makeDirectory("disk").string
        // An ordinary disk of ext3, and many of ext4, have inodes of 128 bytes.
        let made = try await Command.shell(
            "truncate -s 8M \"$1\" && mkfs.ext4 -q -F -I 128 \"$1\" && mount -o loop \"$1\" \"$2\"",
            directory["image"].string, place)
        // A container may have no loop devices.
        guard made.status == 0 else { return }
        try await withCleanUp({ _ = try await Command.run("umount", "-l", place) }) {
            let store = try ContentStore(in: FilePath(place))
            let number = InodeNumber(rawValue: 5)
            let file = try store.create(number, size: 1)
            defer { try? file.close() }
            #expect(try store.status(of: number).stamp == ContentStamp.unknown)
            #expect(try await eventually { try store.status(of: number).stamp != ContentStamp.unknown })
            let stamp = try store.status(of: number).stamp
            try file.writeAll([2].span.bytes, at: 0)
            #expect(try store.status(of: number).stamp != stamp)
        }
    }
}
