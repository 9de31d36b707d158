import Control
import Daemon
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Files and directories that have lost their name, or never had one, and are still in use.
    @Suite struct NamelessFiles {
        @Test(
            "OPEN-2: the content goes of a file that loses its name elsewhere than where the kernel knows it",
            arguments: [
                ("yonder trash put mount/file && yonder wait && yonder trash empty mount", 0),
                ("yonder rename mount/file moved && yonder wait && yonder delete mount/moved", 0),
                ("mv source/file source/moved && yonder signal mount --wait && rm source/moved", 0),
                // The new content is fetched, because the old one was here.
                ("echo other > source/new && mv source/new source/file", 1),
            ])
        func contentOfNamelessFiles(change: String, left: Int) async throws {
            try await Installation.mounted(["file": "text"]) { yonder async throws in
                #expect(try await Command.run("cat", yonder["file"]).output == "text")
                #expect(try await eventually { try await yonder.info("file").content == "materialized" })
                let before = yonder.contentFiles
                #expect(before.count == 1)
                let changed = try await yonder.run(
                    "cd \"$1\" && \(change) && yonder signal mount --wait && yonder wait",
                    yonder.directory.path.string)
                #expect(changed.status == 0, "\(changed.errors)")
                #expect(
                    await eventually {
                        yonder.contentFiles.count == left && Set(before).isDisjoint(with: yonder.contentFiles)
                    })
            }
        }

        @Test(
            "OPEN-2: a file that was replaced by a rename or removed can be used through O_PATH until the kernel forgets it",
            arguments: ["0", "1"])
        func pathDescriptorsStayValid(passthrough: String) async throws {
            let environment = ["YONDER_PASSTHROUGH": passthrough]
            try await Installation.mounted(["remote": "one"], environment: environment) { yonder async throws in
                let program = """
                    import os, stat, subprocess, sys
                    os.chdir(sys.argv[1])
                    def settle(): subprocess.run([sys.argv[2], 'wait', '--timeout', '20', 'mount'], check=True)
                    def use(fd, links):
                        path = f'/proc/self/fd/{fd}'
                        assert os.fstat(fd).st_nlink == links, os.fstat(fd).st_nlink
                        with open(path, 'rb') as f: assert f.read() == b'one', 'content'
                        os.chmod(path, 0o640)
                        assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o640
                        with open(path, 'ab') as f: f.write(b' more')
                        with open(path, 'rb') as f: assert f.read() == b'one more', 'written'
                    open('here', 'w').write('one')
                    assert open('remote').read() == 'one'
                    for name in ['here', 'remote']:
                        fd = os.open(name, os.O_PATH)
                        open('other', 'w').write('two')
                        os.rename('other', name)
                        settle()
                        use(fd, 0)
                        assert open(name).read() == 'two'
                        os.close(fd)
                    open('gone', 'w').write('one')
                    fd = os.open('gone', os.O_PATH)
                    os.unlink('gone')
                    settle()
                    use(fd, 0)
                    os.mkdir('directory')
                    os.symlink('target', 'link')
                    fds = [os.open('directory', os.O_PATH), os.open('link', os.O_PATH | os.O_NOFOLLOW)]
                    os.rmdir('directory')
                    os.unlink('link')
                    settle()
                    for fd in fds: assert os.fstat(fd).st_nlink == 0, os.fstat(fd)
                    assert os.listdir(f'/proc/self/fd/{fds[0]}') == []
                    """
                try await Command(
                    ["python3", "-c", program, yonder.mount.string, Installation.program],
                    environment: yonder.environment, seconds: 60
                ).run().expectSuccess()
                // With the process the last use has ended.
                #expect(await eventually { yonder.contentFiles.count == 2 }, "\(yonder.contentFiles)")
                try await yonder.expectSent()
            }
        }

        @Test("OPEN-2: no reader meets ESTALE while another process replaces the file")
        func readersAgainstReplacements()
            async throws
        {
            try await Installation.mounted { yonder async throws in
                let program = """
                    import os, sys
                    os.chdir(sys.argv[1])
                    open('file', 'w').write('0')
                    readers = []
                    for _ in range(2):
                        pid = os.fork()
                        if pid == 0:
                            try:
                                while not os.path.exists('stop'):
                                    with open('file') as f:
                                        os.fstat(f.fileno())
                                        assert f.read().isdigit()
                                    fd = os.open('file', os.O_PATH)
                                    os.stat(f'/proc/self/fd/{fd}')
                                    os.close(os.open(f'/proc/self/fd/{fd}', os.O_RDONLY))
                                    os.close(fd)
                            except BaseException as error:
                                print(repr(error), file=sys.stderr)
                                os._exit(1)
                            os._exit(0)
                        readers.append(pid)
                    for number in range(300):
                        with open('new', 'w') as f: f.write(str(number))
                        os.rename('new', 'file')
                    open('stop', 'w').close()
                    sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in readers))
                    """
                try await Command.python(program, yonder.mount.string, seconds: 60).expectSuccess()
            }
        }

        // MARK: - Removed on the mount while the content is on the remote

        private static let content = RemoteContent.pattern(size: 6 << 20, seed: 3)

        /// Opens a dataless file, does something to its name, and reads all of it once `isReady` says so.
        private func expectReadable(
            _ mount: ProvidedMount, after action: String, whenever isReady: () async throws -> Bool
        ) async throws {
            let flags = [mount["opened"], mount["go"], mount["done"]].map { $0.replacing("/mount/", with: "/") }
            let program = """
                import hashlib, os, sys, time
                with open(sys.argv[1], 'rb') as f:
                    assert len(f.read(10)) == 10
                    \(action)
                    open(sys.argv[2], 'w').close()
                    for _ in range(2000):
                        if os.path.exists(sys.argv[3]): break
                        time.sleep(0.01)
                    assert len(f.read()) == \((6 << 20) - 10), 'short'
                    f.seek(0)
                    digest = hashlib.sha256(f.read()).hexdigest()
                open(sys.argv[4], 'w').write(digest)
                """
            let reader = try await BackgroundProgram("python3", "-c", program, mount["f"], flags[0], flags[1], flags[2])
            defer { reader.kill() }
            #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: flags[0]) })
            #expect(try await eventually(within: .seconds(10)) { try await isReady() })
            try Data().write(to: URL(fileURLWithPath: flags[1]))
            #expect(await reader.ends(within: .seconds(20)))
            #expect(reader.status == 0)
            let plain = flags[0] + ".plain"
            try Data(Self.content[0..<6 << 20]).write(to: URL(fileURLWithPath: plain))
            let sum = try await Command.run("sha256sum", plain).output.prefix(64)
            #expect(try String(contentsOfFile: flags[2], encoding: .utf8) == sum)
        }

        @Test(
            "OPEN-5: a dataless file that is removed while it is open can be read to its end"
        )
        func removedWhileOpen() async throws {
            try await ProvidedMount.run({ $0.addFile("f", content: Self.content) }) { mount in
                try await expectReadable(mount, after: "os.unlink(sys.argv[1])") {
                    // Longer than the delay after which a removal is sent.
                    try await Task.sleep(for: .milliseconds(1500))
                    return mount.provider.tree.identifier(at: "f") != nil
                }
                #expect(await eventually(within: .seconds(10)) { mount.provider.tree.identifier(at: "f") == nil })
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(try mount.host.replica.database.defects() == [])
            }
        }

        @Test(
            "OPEN-5: a dataless file that is replaced while it is open is fetched before its new content is sent")
        func replacedWhileOpen() async throws {
            let replace = "open(sys.argv[1] + '.new', 'w').write('new'); os.rename(sys.argv[1] + '.new', sys.argv[1])"
            try await ProvidedMount.run({ $0.addFile("f", content: Self.content) }) { mount in
                let identifier = mount.provider.tree.identifier(at: "f")
                try await expectReadable(mount, after: replace) { mount.provider.tree.text(at: "f") == "new" }
                #expect(mount.provider.tree.identifier(at: "f") == identifier)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(try mount.host.replica.database.defects() == [])
            }
        }

        @Test("OPEN-5: a new file of the name of one that is still read does not wait for the reader") func madeAnew()
            async throws
        {
            let anew = "os.unlink(sys.argv[1]); open(sys.argv[1], 'w').write('new')"
            try await ProvidedMount.run({ $0.addFile("f", content: Self.content) }) { mount in
                try await expectReadable(mount, after: anew) { mount.provider.tree.text(at: "f") == "new" }
            }
        }

        @Test("OPEN-5: 'yonder pending' says what such a removal waits for") func pendingRemoval() async throws {
            try await Installation.run { yonder in
                try yonder.write([UInt8](repeating: 7, count: 8 << 20), to: "file")
                try await yonder.mountSource()
                let done = yonder.directory["done"].string
                let holder = try await BackgroundProgram(
                    "python3", "-c",
                    """
                    import os, sys, time
                    f = open(sys.argv[1], 'rb', 0)
                    f.read(10)
                    os.unlink(sys.argv[1])
                    while not os.path.exists(sys.argv[2]): time.sleep(0.01)
                    """, yonder["file"], done)
                defer { holder.kill() }
                #expect(try await eventually { try await yonder.pending()["file"]?.error?.code == "EBUSY" })
                #expect(yonder.sourceText("file") != nil)
                try Data().write(to: URL(fileURLWithPath: done))
                #expect(await holder.ends())
                try await yonder.expectSent()
            }
        }

        // MARK: - O_TMPFILE

        @Test(
            "OPEN-6: O_TMPFILE makes a file without a name, and linkat gives it one",
            arguments: ["0", "1"])
        func unnamedFiles(passthrough: String) async throws {
            let environment = ["YONDER_PASSTHROUGH": passthrough]
            try await Installation.mounted(["directory/x": "x"], environment: environment) { yonder async throws in
                let program = """
                    import ctypes, errno, os, sys
                    os.chdir(sys.argv[1])
                    libc = ctypes.CDLL(None, use_errno=True)
                    def link(fd, name):
                        if libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, name.encode(), 0x400):
                            return ctypes.get_errno()
                        return 0
                    before = sorted(os.listdir('directory'))
                    fd = os.open('directory', os.O_TMPFILE | os.O_RDWR, 0o640)
                    os.write(fd, b'unnamed')
                    status = os.fstat(fd)
                    assert (status.st_nlink, status.st_size, status.st_mode) == (0, 7, 0o100640), status
                    assert sorted(os.listdir('directory')) == before
                    assert link(fd, 'directory/named') == 0
                    assert link(fd, 'directory/again') == 0
                    assert link(fd, 'directory/x') == errno.EEXIST
                    os.write(fd, b', named')
                    assert os.fstat(fd).st_nlink == 2
                    assert os.stat('directory/named').st_ino == os.fstat(fd).st_ino
                    os.unlink('directory/again')
                    os.close(fd)
                    assert open('directory/named').read() == 'unnamed, named'
                    fd = os.open('directory', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
                    assert link(fd, 'forbidden') == errno.ENOENT
                    os.close(fd)
                    try:
                        os.open('directory', os.O_TMPFILE | os.O_RDONLY)
                        assert False
                    except OSError as error: assert error.errno == errno.EINVAL
                    os.umask(0o027)
                    fd = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o666)
                    assert os.fstat(fd).st_mode == 0o100640, oct(os.fstat(fd).st_mode)
                    os.write(fd, b'lost')
                    os.close(fd)
                    """
                try await Command.python(program, yonder.mount.string).expectSuccess()
                // What never got a name is gone with its last use.
                #expect(await eventually { yonder.contentFiles.count <= 2 }, "\(yonder.contentFiles)")
                try await yonder.expectSent()
                #expect(yonder.sourceText("directory/named") == "unnamed, named")
            }
        }

        @Test("OPEN-6: a file without a name does not outlive a daemon that is killed") func unnamedFilesAndCrashes()
            async throws
        {
            try await Installation.mounted { yonder async throws in
                let holder = try await BackgroundProgram(
                    "python3", "-c",
                    "import os, sys, time; f = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR); os.write(f, b'x'); time.sleep(60)",
                    yonder.mount.string)
                defer { holder.kill() }
                #expect(await eventually { yonder.contentFiles.count == 1 })
                try await yonder.killDaemon()
                holder.kill()
                #expect(await holder.ends())
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(yonder.contentFiles == [])
                #expect(try await yonder.status().warnings == [])
            }
        }
    }
}
