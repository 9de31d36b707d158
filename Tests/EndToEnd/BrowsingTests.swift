import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What a shell sees of a mounted folder.
    @Suite struct Browsing {
        /// Deep paths, empty files, links, and every kind of name that Linux allows and UTF-8 can say.
        static let oddTree = """
            import os, sys
            root = sys.argv[1]
            def put(name, data=b'x', mode=0o644, ns=1_234_567_890_123_456_789):
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'wb') as f: f.write(data)
                os.chmod(path, mode)
                os.utime(path, ns=(ns, ns))
            put('empty', b'')
            put('exécutable', b'#!/bin/sh\\necho ran\\n', 0o755)
            put('private', b'secret', 0o600, 1)
            put('before 1970', b'old', 0o644, -5_000_000_001)
            put('n' * 255)
            put('é' * 127)
            put('line\\nbreak')
            put('\\U0001F600')
            put('caf\\u00e9', b'composed')
            put('cafe\\u0301', b'decomposed')
            put(' leading and trailing ')
            put('-rf')
            put('*?[]{}$`"\\'\\\\')
            put('/'.join('d%d' % i for i in range(40)) + '/deep')
            put('many/%s' % 'x', b'')
            for i in range(3000): put('many/file%04d' % i, b'%d' % i)
            os.symlink('nowhere', os.path.join(root, 'dangling'))
            os.symlink('empty', os.path.join(root, 'link'))
            os.symlink('x' * 4000, os.path.join(root, 'long link'))
            """

        /// One line for every item: type, mode, size, time to the nanosecond, name, link target. In order.
        static let listing = """
            import os, stat, sys
            lines = []
            for folder, directories, files in os.walk(os.fsencode(sys.argv[1])):
                for name in directories + files:
                    path = os.path.join(folder, name)
                    s = os.lstat(path)
                    link = os.readlink(path) if stat.S_ISLNK(s.st_mode) else b''
                    lines.append(repr((os.path.relpath(path, os.fsencode(sys.argv[1])), oct(s.st_mode), s.st_size,
                        s.st_mtime_ns, s.st_uid, s.st_gid, link)))
            print('\\n'.join(sorted(lines)))
            """

        @Test("NAME-2 and NAME-1: a tree with odd names is listed exactly as the source has it") func listsAsTheSource()
            async throws
        {
            try await Installation.run { yonder in
                try await Command.python(Self.oddTree, yonder.source.string).expectSuccess()
                try await yonder.mountSource()
                let source = try await Command.python(Self.listing, yonder.source.string)
                let mount = try await Command.python(Self.listing, yonder.mount.string)
                #expect(source.output.split(separator: "\n").count > 3050)
                #expect(source.output == mount.output)
                #expect(try await Command.python(Self.listing, yonder.mount.string).output == source.output)
                let hashes = "cd \"$1\" && find . -type f -print0 | sort -z | xargs -0 sha256sum"
                #expect(
                    try await Command.shell(hashes, yonder.source.string).output
                        == Command.shell(hashes, yonder.mount.string).output)
            }
        }

        @Test("NAME-3 and NAME-4: what was listed once needs no provider, before and after a remount; inodes stay")
        func needsNoProviderForWhatIsKnown() async throws {
            try await Installation.run { yonder in
                for name in ["a/b/c", "a/d", "e"] { try yonder.write("text of \(name)", to: name) }
                try await yonder.mountSource()
                let list = "cd \"$1\" && find . -printf '%i %p %s %m %T@\\n' | sort"
                let first = try await Command.shell(list, yonder.mount.string)
                #expect(try await Command.run("cat", yonder["e"]).output == "text of e")
                // Without its folder the provider can answer nothing.
                try FileManager.default.moveItem(
                    atPath: yonder.source.string, toPath: yonder.directory["elsewhere"].string)
                #expect(try await Command.shell(list, yonder.mount.string).output == first.output)
                #expect(try await Command.run("cat", yonder["e"]).output == "text of e")
                try await Command.run("cat", yonder["a/d"]).expectFailure(saying: "No route to host")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell(list, yonder.mount.string).output == first.output)
                // Nor does a new daemon ask it.
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell(list, yonder.mount.string).output == first.output)
            }
        }

        @Test("NAME-5: stat fetches nothing, cat materializes") func statFetchesNothing() async throws {
            try await Installation.run { yonder in
                try yonder.write(Array(repeating: 7, count: 100_000), to: "file")
                try await yonder.mountSource()
                #expect(try await Command.run("stat", "-c", "%s %b", yonder["file"]).line == "100000 1")
                #expect(try await yonder.info("file").content == "dataless")
                #expect(try await Command.run("md5sum", yonder["file"]).status == 0)
                #expect(
                    try await eventually { try await yonder.info("file").content == "materialized" })
                #expect(try await yonder.info("file").localBytes == 100_000)
                let attribute = try await Command.run(
                    "getfattr", "--only-values", "-n", "user.yonder.content", yonder["file"])
                #expect(attribute.output == "materialized")
                // Copies and backups must not carry them.
                #expect(try await Command.run("getfattr", "-d", "-m", "-", yonder["file"]).output == "")
            }
        }

        @Test("READ-1: a program can be run from the mount, and a file mapped") func executesAndMaps() async throws {
            try await Installation.run { yonder in
                try FileManager.default.copyItem(atPath: "/bin/echo", toPath: yonder.source.appending("echo").string)
                let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
                try yonder.write(bytes, to: "mapped")
                try await yonder.mountSource()
                #expect(try await Command.run(yonder["echo"], "ran").line == "ran")
                let map = """
                    import mmap, sys
                    with open(sys.argv[1], 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
                        sys.stdout.buffer.write(m[:])
                    """
                #expect(try await Command.python(map, yonder["mapped"]).outputBytes == bytes)
                // And once more when it is here.
                #expect(try await Command.python(map, yonder["mapped"]).outputBytes == bytes)
            }
        }

        @Test("READ-3: the beginning of a huge file is read without the rest") func readsTheBeginningOnly() async throws
        {
            try await Installation.run { yonder in
                try yonder.write("", to: "huge")
                try await Command.run("truncate", "-s", "5G", yonder.source.appending("huge").string).expectSuccess()
                try await yonder.mountSource()
                let head = try await Command.run("head", "-c", "4096", yonder["huge"])
                #expect(head.outputBytes == Array(repeating: 0, count: 4096))
                #expect(
                    try await eventually { try await yonder.info("huge").content == "partial" })
                #expect(try await yonder.info("huge").localBytes < 64 << 20)
                let end = try await Command.run("tail", "-c", "10", yonder["huge"])
                #expect(end.outputBytes.count == 10)
                #expect(try await yonder.info("huge").localBytes < 128 << 20)
            }
        }

        @Test("nothing can be changed on a mount that is read-only") func refusesChanges() async throws {
            try await Installation.mounted(["file": "text"], options: ["--read-only"]) { yonder async throws in
                for line in [
                    "echo x > \"$1/new\"", "echo x >> \"$1/file\"", "rm \"$1/file\"", "mkdir \"$1/new\"",
                    "mv \"$1/file\" \"$1/other\"", "chmod 600 \"$1/file\"", "touch \"$1/file\"",
                    "ln -s a \"$1/new\"", "setfattr -n user.own -v 1 \"$1/file\"",
                ] {
                    let outcome = try await Command.shell(line, yonder.mount.string)
                    #expect(outcome.status != 0, "\(line)")
                    #expect(outcome.errors.contains("Read-only file system"), "\(line): \(outcome.errors)")
                }
                #expect(try String(contentsOfFile: yonder.source.appending("file").string, encoding: .utf8) == "text")
            }
        }
    }
}
