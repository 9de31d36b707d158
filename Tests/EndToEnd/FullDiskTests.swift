import Control
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A state directory on a file system that is full to the last block.
    @Suite(
        .enabled(if: SmallDisk.isPossible, "only root can mount a small file system")
    ) struct FullDisk {
        @Test("WRITE-5: on a full state disk files can be removed and moved, and what cannot be fetched is ENOSPC")
        func roomCanBeMade() async throws {
            try await SmallDisk.run { yonder, disk in
                try yonder.write([UInt8](repeating: 7, count: 40 << 20), to: "remote")
                try yonder.write("small", to: "small")
                try await yonder.mountSource()
                try await yonder.shell("mkdir d; for n in 1 2 3 4; do head -c 2000000 /dev/zero > d/f$n; done; ls")
                try await yonder.expectSent()
                // The comparison has read everything, and the kernel tells of a close a moment after it.
                #expect(try await eventually { try await yonder.yonder("evict", yonder["remote"]).status == 0 })
                try await SmallDisk.fill(disk)
                let read = try await Command.run("cat", yonder["remote"])
                #expect(read.status != 0 && read.errors.contains("No space left"), "\(read.errors)")
                for line in ["mv d/f1 d/g1", "mv d/f2 f2", "rm d/f3", "chmod 600 d/f4", "rm -r d", "rm f2"] {
                    let outcome = try await Command.shell("cd \"$1\" && \(line)", yonder.mount.string)
                    #expect(outcome.status == 0, "\(line): \(outcome.errors)")
                }
                #expect(try await yonder.shell("ls") == "remote\nsmall\n")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                let left = try FileManager.default.contentsOfDirectory(atPath: yonder.source.string).sorted()
                #expect(left == ["remote", "small"])
                // With room again the reserve is there again.
                _ = try await Command.shell("rm \"$1\"/filler-*", disk)
                let reserve = disk + "/state/domains/mount/reserve"
                let isMade = try await eventually {
                    try await yonder.shell("touch again; rm again")
                    return FileManager.default.fileExists(atPath: reserve)
                }
                #expect(isMade)
                #expect(try await yonder.shell("cat remote | wc -c") == "41943040\n")
            }
        }

        @Test(
            "WRITE-5: hundreds of refused files leave the room in which files are removed, moved and evicted, also after SIGKILL"
        )
        func refusedFiles() async throws {
            try await SmallDisk.run { yonder, disk in
                for number in 0..<12 { try yonder.write([UInt8](repeating: 7, count: 4 << 20), to: "there\(number)") }
                try await yonder.mountSource()
                try await yonder.shell("cat there* | wc -c")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let write = """
                    import os
                    written = 0
                    for number in range(500):
                        try:
                            with open('new%d' % number, 'xb', buffering=0) as file: written += file.write(os.urandom(300000)) == 300000
                        except OSError as error:
                            assert error.errno == 28, error
                    print(written)
                    """
                let written = try await Command.shell(
                    "cd \"$1\" && python3 -c \"$2\"", yonder.mount.string, write, seconds: 60)
                #expect((Int(written.line) ?? 0) > 5, "\(written)")
                if canContinueMounts {
                    try await Command.shell("kill -9 $(cat \"$1/state/yonderd.lock\")", disk).expectSuccess()
                }
                for line in ["mv new1 moved", "rm new2", "chmod 600 new3", "mv new3 moved"] {
                    let outcome = try await Command.shell("cd \"$1\" && \(line)", yonder.mount.string)
                    let log = (try? String(contentsOfFile: disk + "/state/yonderd.log", encoding: .utf8)) ?? ""
                    #expect(outcome.status == 0, "\(line): \(outcome.errors)\(log)")
                }
                #expect(try await yonder.yonder("evict", yonder["there1"]).status == 0)
                #expect(try await yonder.shell("mkdir d; echo x > d/x; cat d/x") == "x\n")
            }
        }

        @Test(
            "WRITE-5: a disk of 30 MB that programs go on writing to for seconds while it is full can be emptied, also after SIGKILL",
            arguments: [false, true])
        func persistentWriters(isKilled: Bool) async throws {
            let write = """
                import errno, os, random, sys, time
                name, notes, end, refused = sys.argv[1], sys.argv[2], time.monotonic() + 50, 0
                choice = random.Random(name)
                all_refused = open(notes + '/refused', 'ab', buffering=0)
                os.mkdir(name)
                # On a loaded machine it takes longer until they have been refused so often.
                while not os.path.exists(notes + '/over') or os.fstat(all_refused.fileno()).st_size <= 100:
                    assert time.monotonic() < end
                    try:
                        with open(name + '/%d' % choice.randrange(60), 'wb', buffering=0) as file:
                            file.write(os.urandom(choice.choice([300, 3000, 300000, 900000])))
                    except OSError as error:
                        assert error.errno == errno.ENOSPC, error
                        refused += 1
                        all_refused.write(b'x')
                print(refused)
                """
            try await SmallDisk.run(megabytes: 30) { yonder, disk in
                try await yonder.mountSource()
                let notes = try yonder.directory.makeDirectory("notes").string
                let ending = isKilled && canContinueMounts ? "kill -9 $(cat \"$1/state/yonderd.lock\")" : ":"
                async let killed = Command.shell("sleep 3; \(ending) && sleep 2 && touch \"$2/over\"", disk, notes)
                let written = try await Command.shell(
                    """
                    cd "$1" && for name in a b c; do python3 -c "$2" $name "$3" & done; wait
                    """, yonder.mount.string, write, notes, seconds: 60)
                let refused = written.output.split(separator: "\n").compactMap { Int($0) }
                #expect(refused.count == 3 && refused.reduce(0, +) > 100, "\(written)")
                #expect(try await killed.status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "60").status == 0)
                try await Command.run("diff", "-r", yonder.mount.string, yonder.source.string).expectSuccess()
                try await Command.shell("rm -r \"$1\"/?", yonder.mount.string).expectSuccess()
                // The contents, and what the logs do not need, are free again.
                let isFree = try await eventually(within: .seconds(20)) {
                    try FileSystemStatistics(of: FilePath(disk)).availableBlocks > 5000
                }
                let left = try await Command.shell("du -a \"$1\"", disk).output
                #expect(isFree, "\(left)")
            }
        }

        @Test("WRITE-5: what was written to a disk of 20 MB until it was full is sent, and makes room")
        func smallestDisk() async throws {
            try await SmallDisk.run(megabytes: 20) { yonder, _ in
                try await yonder.mountSource()
                _ = try await Command.shell(
                    """
                    cd "$1" || exit 1
                    number=0
                    while head -c 1000000 /dev/urandom > f$number && [ $number -lt 40 ]; do number=$((number + 1)); done
                    """, yonder.mount.string)
                try await yonder.yonder("wait", "--timeout", "30").expectSuccess()
                #expect(try await yonder.yonder("evict", yonder["f0"]).status == 0)
                try await yonder.shell("rm f1; mv f2 g2")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                try await yonder.shell("rm f3")
                try await yonder.expectSent()
                try await Command.run("diff", "-r", yonder.mount.string, yonder.source.string).expectSuccess()
            }
        }

        @Test("REMOVE-2: a removal that has no room for what it keeps says where everything is, and can be repeated")
        func removal() async throws {
            try await SmallDisk.run { yonder, disk in
                try await yonder.mountSource()
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("head -c 3000000 /dev/urandom > new")
                let sum = try await Command.run("sha256sum", yonder["new"]).output.prefix(64)
                let small = try yonder.directory.makeDirectory("small").string
                let mounted = try await Command.run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small)
                try #require(mounted.status == 0, "\(mounted.errors)")
                let failed = try await yonder.yonder("remove", "mount", "--to", small + "/kept")
                _ = try await Command.run("umount", "-l", small)
                #expect(
                    failed.status == 1 && failed.errors.contains("'mount' still has everything"), "\(failed.errors)")
                let kept = yonder.directory["kept"]
                #expect(try await yonder.yonder("remove", "mount", "--to", kept.string).status == 0)
                let files = try await Command.shell("find \"$1\" -name new -exec sha256sum {} +", kept.string)
                #expect(files.output.hasPrefix(sum))
            }
        }

        @Test(
            "WRITE-4: a copy that is larger than the free space is ENOSPC, and the file that is copied stays as it is",
            arguments: ["write", "copy_file_range", "sendfile", "posix_fallocate"])
        func refusesLargeCopies(call: String) async throws {
            let copy = """
                import errno, os, sys
                with open('original', 'rb') as source, open('copy', 'wb') as copy:
                    old, new, size, done = source.fileno(), copy.fileno(), os.fstat(source.fileno()).st_size, 0
                    try:
                        while done < size:
                            if sys.argv[1] == 'copy_file_range': count = os.copy_file_range(old, new, size - done)
                            elif sys.argv[1] == 'sendfile': count = os.sendfile(new, old, done, size - done)
                            elif sys.argv[1] == 'write': count = os.write(new, os.pread(old, 1 << 20, done))
                            else: count = os.posix_fallocate(new, 0, size) or size
                            if count == 0: break
                            done += count
                        print('copied', done)
                    except OSError as error:
                        print(errno.errorcode[error.errno])
                """
            try await SmallDisk.run { yonder, _ in
                try await yonder.mountSource()
                // A paused domain lists nothing, and without the names of a directory none is removed from it.
                try await yonder.shell("ls")
                // What has not been sent cannot be evicted, so it cannot make room for the copy.
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("head -c 40000000 /dev/urandom > original")
                let sum = try await yonder.shell("sha256sum original")
                let outcome = try await Command.shell(
                    "cd \"$1\" && python3 -c \"$2\" \"$3\"", yonder.mount.string, copy, call)
                #expect(outcome.line == "ENOSPC", "\(outcome.output)\(outcome.errors)")
                #expect(try await yonder.shell("sha256sum original") == sum)
                #expect(
                    try await yonder.shell("rm copy; echo small > small; cat small; ls") == "small\noriginal\nsmall\n")
            }
        }

        @Test("MOUNT-7: a domain that finds no room on the disk is named, and mounted again when there is room")
        func mountsWhenThereIsRoom() async throws {
            try await SmallDisk.run { yonder, disk in
                try yonder.write("small", to: "small")
                try await yonder.mountSource()
                #expect(try await yonder.yonder("shutdown").status == 0)
                // As a crash on a full disk leaves it: without the room that is kept for a mount.
                let kept = try await Command.shell(
                    "cd \"$1\"/state/domains/mount && rm -f reserve ./*-wal ./*-shm", disk)
                try #require(kept.status == 0, "\(kept.errors)")
                try await SmallDisk.fill(disk)
                // It starts the daemon.
                #expect(try await yonder.yonder("check", "nowhere").status == 1)
                #expect(try await eventually { try await yonder.yonder("status").output.contains("no room") })
                let named = try await yonder.yonder("status", "mount")
                #expect(named.status == 69 && named.errors.contains("mounted when there is more room"), "\(named)")
                // It is the reason of none of these ends, however many there are.
                for restarts in 1...5 {
                    // A daemon that has run so long was no crash at its start.
                    try await Task.sleep(for: .milliseconds(1200))
                    let worker = try await yonder.json(StatusReport.self, "status").daemon.worker
                    #expect(try await Command.run("kill", "-9", String(worker)).status == 0)
                    let isNamed = try await eventually {
                        let daemon = try await yonder.json(StatusReport.self, "status").daemon
                        return daemon.restarts == restarts && daemon.withoutRoom?.count == 1
                    }
                    #expect(isNamed, "\(restarts)")
                }
                _ = try await Command.shell("rm \"$1\"/filler-*", disk)
                let isMounted = await eventually(within: .seconds(20)) {
                    FileManager.default.fileExists(atPath: yonder["small"])
                }
                #expect(isMounted)
                #expect(try await !yonder.yonder("status").output.contains("no room"))
            }
        }

        @Test("WRITE-5: a command that finds no room names the directory whose disk is full")
        func namesTheDisk() async throws {
            try await SmallDisk.run { yonder, disk in
                try await yonder.mountSource()
                let other = try yonder.directory.makeDirectory("other").string
                let folder = try yonder.directory.makeDirectory("folder").string
                _ = try yonder.directory.makeFile("folder/file", Array("here".utf8))
                try await SmallDisk.fill(disk)
                for words in [["mount"], ["import", "--yes", folder]] {
                    try await yonder.yonder(words: words + [yonder.source.string, other])
                        .expectFailure(saying: "the disk with the state directory '\(disk)/state' is full")
                }
                #expect(FileManager.default.fileExists(atPath: folder + "/file"))
            }
        }

        @Test("WRITE-5: with a full state disk a known domain can be mounted, and files removed then")
        func mounts() async throws {
            try await SmallDisk.run { yonder, disk in
                try yonder.write("small", to: "small")
                try await yonder.mountSource()
                try await yonder.shell("for n in 1 2; do head -c 2000000 /dev/zero > f$n; done; ls")
                try await yonder.expectSent()
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try await SmallDisk.fill(disk)
                try await yonder.yonder("mount", "mount").expectSuccess()
                let outcome = try await Command.shell("cd \"$1\" && rm f1 && mv f2 g2 && ls", yonder.mount.string)
                #expect(outcome.status == 0 && outcome.output == "g2\nsmall\n", "\(outcome.output)\(outcome.errors)")
            }
        }
    }
}
