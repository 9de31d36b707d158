import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

/// That extensions are used where they are announced, and that several requests and connections are in flight: by the log of
/// OpenSSH's server.
@Suite(.tags(.server), .enabled(if: SFTPFolder.isInstalled)) struct SFTPExtensionTests {
    /// - Parameter isAlone: whether the server refuses all connections but the first.
    private func withRemote(
        refusing refused: String = "", isAlone: Bool = false,
        _ test: (SFTPRemote, SFTPFolder, _ log: (String) throws -> [String]) async throws -> Void
    ) async throws {
        let notes = try TemporaryDirectory()
        defer { notes.remove() }
        let limit = isAlone ? "mkdir \(notes["first"]) || exit 1;" : ""
        let folder = try SFTPFolder(
            "sh -c '\(limit) echo connection >> \(notes["log"]); "
                + "exec \(SFTPFolder.program) -e -l DEBUG3 \(refused.isEmpty ? "" : "-P " + refused) 2>> \(notes["log"])'"
        )
        defer { folder.directory.remove() }
        let environment = folder.environment
        let remote = try SFTPProviderFactory.remote(folder.domain.source) { environment }
        try await withCleanUp({ await remote.close() }) {
            try await test(remote, folder) { words in
                try String(contentsOfFile: notes["log"].string, encoding: .utf8).split(whereSeparator: \.isNewline).map(
                    String.init
                )
                .filter { $0.contains(words) }
            }
        }
    }

    private func write(
        _ bytes: [UInt8], to name: String, _ remote: SFTPRemote, _ folder: SFTPFolder,
        if condition: RemoteCondition = .absent
    ) async throws -> RemoteEntry {
        let descriptor = try FileDescriptor.open(try folder.directory.makeFile("contents", bytes), .readOnly)
        let date = FileTimestamp(seconds: 1_500_000_000)
        return try await remote.write(
            ContentSource(descriptor: descriptor, size: Int64(bytes.count)), to: RemotePath([name]),
            attributes: RemoteAttributes(contentModificationDate: date, permissions: 0o640), if: condition)
    }

    @Test("SFTP-2: a new file takes its name by a hard link where the server has them", arguments: ["", "hardlink"])
    func hardLinks(_ refused: String) async throws {
        try await withRemote(refusing: refused) { remote, folder, log in
            let made = try await write([1, 2, 3], to: "file", remote, folder)
            #expect(made.attributes.permissions == 0o640)
            #expect(made.attributes.contentModificationDate?.seconds == 1_500_000_000)
            #expect(try log("hardlink old").isEmpty == !refused.isEmpty)
            #expect(try log("rename old").isEmpty == refused.isEmpty)
            await #expect(throws: RemoteConditionFailure.self) { _ = try await write([4], to: "file", remote, folder) }
            let names = { try? FileManager.default.contentsOfDirectory(atPath: folder.root.string) }
            #expect(await eventually { names() == ["file"] })
        }
    }

    @Test("SFTP-1: a file is replaced in one step where the server can", arguments: ["", "posix-rename"])
    func replacing(_ refused: String) async throws {
        try await withRemote(refusing: refused) { remote, folder, log in
            let old = try await write([1], to: "file", remote, folder)
            _ = try await write([1, 2], to: "file", remote, folder, if: .unchanged(tag: old.tag))
            #expect(try log("posix-rename old").isEmpty == !refused.isEmpty)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data([1, 2]))
        }
    }

    /// Passes the messages of SFTP on to a server and back, answers requests by the extensions that it is given with "unsupported", or with
    /// the status after an equals sign, and writes their names to a file.
    private static let filter = """
        import os, struct, subprocess, sys, threading
        server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lock = threading.Lock()
        refused = dict(word.partition("=")[::2] for word in sys.argv[3:])
        def message(stream):
            head = stream.read(4)
            return head + stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""
        def send(data, stream):
            stream.write(data)
            stream.flush()
        def answer():
            while data := message(server.stdout):
                with lock:
                    send(data, sys.stdout.buffer)
            os._exit(0)
        threading.Thread(target=answer, daemon=True).start()
        while data := message(sys.stdin.buffer):
            name = data[13:13 + struct.unpack(">I", data[9:13])[0]].decode() if data[4] == 200 else ""
            if name in refused:
                with open(sys.argv[2], "a") as log:
                    print(name, file=log)
                with lock:
                    send(struct.pack(">IB4sIII", 17, 101, data[5:9], int(refused[name] or 8), 0, 0), sys.stdout.buffer)
            else:
                send(data, server.stdin)
        server.stdin.close()
        server.wait()
        """

    @Test("SFTP-1: an extension for writing that a server announces and does not support is tried once")
    func unsupported() async throws {
        let notes = try TemporaryDirectory()
        defer { notes.remove() }
        let refused = ["fsync@openssh.com", "lsetstat@openssh.com", "posix-rename@openssh.com"]
        let program = try notes.makeFile("filter.py", Self.filter.utf8)
        let folder = try SFTPFolder(
            "python3 \(program) \(SFTPFolder.program) \(notes["log"]) \(refused.joined(separator: " "))")
        try await folder.withRemote { remote in
            let first = try await write([1], to: "file", remote, folder)
            let second = try await write([1, 2], to: "file", remote, folder, if: .unchanged(tag: first.tag))
            _ = try await write([1, 2, 3], to: "file", remote, folder, if: .unchanged(tag: second.tag))
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data([1, 2, 3]))
            let names = { try? FileManager.default.contentsOfDirectory(atPath: folder.root.string) }
            #expect(await eventually { names() == ["file"] })
            let link = RemotePath(["link"])
            _ = try await remote.makeSymbolicLink(at: link, to: "nowhere", attributes: RemoteAttributes())
            for _ in 1...2 {
                let date = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_500_000_000))
                let (_, notStored) = try await remote.set(date, of: link, kind: .symbolicLink)
                #expect(notStored.contains(.contentModificationDate))
            }
            let asked = try String(contentsOfFile: notes["log"].string, encoding: .utf8).split(separator: "\n")
            #expect(asked.map(String.init).sorted() == refused)
        }
    }

    @Test("SFTP-3: a symbolic link has its time where the server can store it", arguments: ["", "lsetstat"])
    func linkTimes(_ refused: String) async throws {
        try await withRemote(refusing: refused) { remote, _, _ in
            let path = RemotePath(["link"])
            _ = try await remote.makeSymbolicLink(at: path, to: "nowhere", attributes: RemoteAttributes())
            let date = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_500_000_000))
            let (entry, notStored) = try await remote.set(date, of: path, kind: .symbolicLink)
            #expect(notStored.contains(.contentModificationDate) == !refused.isEmpty)
            #expect((entry.attributes.contentModificationDate?.seconds == 1_500_000_000) == refused.isEmpty)
            let new = try await remote.makeSymbolicLink(at: RemotePath(["new"]), to: "nowhere", attributes: date)
            #expect((new.attributes.contentModificationDate?.seconds == 1_500_000_000) == refused.isEmpty)
        }
    }

    @Test(
        "SFTP-10: a link is made where the server does not store its date",
        arguments: [SFTPStatus.permissionDenied, SFTPStatus.failure])
    func linksWithoutDates(_ status: UInt32) async throws {
        let notes = try TemporaryDirectory()
        defer { notes.remove() }
        let program = try notes.makeFile("filter.py", Self.filter.utf8)
        let folder = try SFTPFolder(
            "python3 \(program) \(SFTPFolder.program) \(notes["log"]) lsetstat@openssh.com=\(status)")
        try await folder.withRemote { remote in
            let date = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_500_000_000))
            let link = RemotePath(["link"])
            let made = try await remote.makeSymbolicLink(at: link, to: "nowhere", attributes: date)
            #expect(made.kind == .symbolicLink)
            guard status == SFTPStatus.failure else { return }
            let (_, notStored) = try await remote.set(date, of: link, kind: .symbolicLink)
            #expect(notStored.contains(.contentModificationDate))
        }
    }

    @Test("SFTP-10: a server that stores no attributes takes files and directories")
    func refusedAttributes() async throws {
        try await withRemote(refusing: "setstat,fsetstat") { remote, folder, _ in
            let made = try await write([1, 2, 3], to: "file", remote, folder)
            #expect(made.size == 3 && made.attributes.contentModificationDate?.seconds != 1_500_000_000)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data([1, 2, 3]))
            let date = FileTimestamp(seconds: 1_500_000_000)
            let wanted = RemoteAttributes(contentModificationDate: date, permissions: 0o700)
            let (entry, notStored) = try await remote.set(wanted, of: RemotePath(["file"]), kind: .file)
            #expect(notStored.isSuperset(of: [.contentModificationDate, .permissions]))
            #expect(entry.attributes.permissions != 0o700)
            // The request that makes a file has its mode.
            let second = try await write([4], to: "second", remote, folder)
            #expect(second.attributes.permissions == 0o640)
            let directory = try await remote.makeDirectory(at: RemotePath(["directory"]), attributes: wanted)
            #expect(directory.kind == .directory && directory.attributes.permissions == 0o700)
        }
    }

    @Test("SFTP-5: a server says how long a request may be", arguments: ["", "limits"])
    func limits(_ refused: String) async throws {
        try await withRemote(refusing: refused) { remote, folder, log in
            let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
            let made = try await write(bytes, to: "file", remote, folder)
            let sink = CollectingSink()
            _ = try await remote.read(RemotePath(["file"]), tag: made.tag, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<Int64(bytes.count)) == bytes)
            // As the window grows, so do the requests.
            let lengths = try log(": read ").compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            let longest = try #require(lengths.max())
            #expect(refused.isEmpty ? (32_769...261_120).contains(longest) : longest == 32_768, "\(lengths)")
        }
    }

    @Test("SFTP-5: a directory's end is requested before its beginning has arrived")
    func readAhead() async throws {
        try await withRemote { remote, folder, log in
            for number in 0..<250 { try await folder.write([1], to: "\(number)") }
            let listing = try await remote.entries(in: .root, from: nil, limit: 1000)
            #expect(listing.entries.count == 250 && listing.next == nil)
            // Two, then four; each response of OpenSSH has at most a hundred names.
            #expect(try log(": readdir").count == 6)
        }
    }

    @Test("SFTP-5: a file stays open between its ranges, on each connection, and is closed a second later")
    func openFiles() async throws {
        try await withRemote { remote, folder, log in
            let bytes = [UInt8](megabytes: 33)
            let made = try await write(bytes, to: "file", remote, folder)
            let before = try log("open \"").count
            // They are compared in the end: that takes long, and a file that is not read is closed after a second.
            var results: [(range: Range<Int64>, sink: CollectingSink)] = []
            func read(_ range: Range<Int64>) async throws {
                let sink = CollectingSink()
                _ = try await remote.read(RemotePath(["file"]), tag: made.tag, range: range, into: sink)
                results.append((range, sink))
            }
            for start: Int64 in [0, 16 << 20] { try await read(start..<start + 16 << 20) }
            // The second range may have begun before each of the other connections had opened the file for the first.
            #expect(try (1...4).contains(log("open \"").count - before))
            try await read(0..<1000)
            #expect(try log("open \"").count - before <= 4)
            let opened = try log("open \"").count
            #expect(await eventually(within: .seconds(10)) { (try? log("close \"").count == opened) ?? false })
            // A file that is read whole is closed at once.
            try await read(0..<1000)
            try await folder.write([1, 2, 3], to: "small")
            let small = try await remote.entry(at: RemotePath(["small"]))
            _ = try await remote.read(RemotePath(["small"]), tag: small.tag, range: nil, into: CollectingSink())
            // The server answers in order: a close that the read has sent is in the log when this request is answered.
            _ = try await remote.entry(at: RemotePath(["small"]))
            #expect(try log("close \"").contains { $0.contains("small") })
            for (range, sink) in results {
                #expect(try sink.bytes(in: range) == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
            }
        }
    }

    @Test("SFTP-5: a file that is written in place while it is open here is another version")
    func openFilesChange() async throws {
        try await withRemote { remote, folder, log in
            try await folder.write([UInt8](megabytes: 2), to: "file")
            let path = RemotePath(["file"])
            let entry = try await remote.entry(at: path)
            _ = try await remote.read(path, tag: entry.tag, range: 0..<1000, into: CollectingSink())
            try await folder.write([1, 2, 3], to: "file")
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await remote.read(path, tag: entry.tag, range: 1000..<2000, into: CollectingSink())
            }
            #expect(error?.code == .versionNoLongerAvailable)
            let present = try await remote.read(path, tag: nil, range: nil, into: CollectingSink())
            #expect(present.size == 3)
            // An open file would keep a server's file system from removing its directory.
            _ = try await remote.read(path, tag: present.tag, range: 0..<1, into: CollectingSink())
            let closed = try log("close \"").count
            try await remote.delete(path, kind: .file, if: .always)
            #expect(try log("close \"").count == closed + 1)
        }
    }

    @Test(
        "SFTP-6: a file is sent while it is written, for its owner alone, and appears as a whole",
        arguments: [false, true])
    func earlyUpload(isOverwritten: Bool) async throws {
        try await withRemote { remote, folder, log in
            let file = try GrowingFile()
            var bytes = GrowingFile.bytes(3 << 20)
            try file.write(Array(bytes[..<(2 << 20)]), at: 0)
            let sending = Task { await remote.receive(file.growing, in: .root) }
            defer { file.growing.giveUp() }
            let hasBegun = await eventually {
                (file.growing.upload as? EarlyUpload).map { $0.sent > 1 << 20 } ?? false
            }
            try #require(hasBegun)
            let names = { (try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) ?? [] }
            let hidden = try #require(names().first)
            #expect(names().count == 1 && HiddenName.isOne(hidden))
            let status = try FileManager.default.attributesOfItem(atPath: folder[hidden])
            #expect(status[.posixPermissions] as? Int == 0o600)
            try file.write(Array(bytes[(2 << 20)...]), at: 2 << 20)
            if isOverwritten {
                bytes[5] ^= 1
                try file.write(Array(bytes[..<10]), at: 0)
            }
            let made = try await remote.write(
                try file.content(size: bytes.count), to: RemotePath(["file"]),
                attributes: RemoteAttributes(
                    contentModificationDate: FileTimestamp(seconds: 1_500_000_000), permissions: 0o640), if: .absent)
            await sending.value
            #expect(made.size == 3 << 20 && made.attributes.permissions == 0o640)
            #expect(made.attributes.contentModificationDate?.seconds == 1_500_000_000)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes))
            #expect((file.growing.upload as? EarlyUpload)?.isSent == !isOverwritten)
            #expect(await eventually { names() == ["file"] })
            // The whole content was sent again only when its beginning had changed.
            #expect(try log("flags WRITE,CREATE,EXCL").count == (isOverwritten ? 2 : 1))
        }
    }

    @Test("SFTP-6: nothing stays of a file that is never whole, or whose name was taken")
    func abandonedEarlyUploads() async throws {
        try await withRemote { remote, folder, _ in
            let names = { (try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) ?? [] }
            for isTaken in [false, true] {
                let file = try GrowingFile()
                let bytes = GrowingFile.bytes(1 << 20)
                try file.write(bytes, at: 0)
                let sending = Task { await remote.receive(file.growing, in: .root) }
                let hasBegun = await eventually {
                    (file.growing.upload as? EarlyUpload).map { $0.sent > 1 << 19 } ?? false
                }
                try #require(hasBegun)
                if isTaken {
                    try await folder.write([1], to: "file")
                    await #expect(throws: RemoteConditionFailure.self) {
                        _ = try await remote.write(
                            try file.content(size: bytes.count), to: RemotePath(["file"]),
                            attributes: RemoteAttributes(permissions: 0o640), if: .absent)
                    }
                } else {
                    file.growing.giveUp()
                }
                await sending.value
                #expect(await eventually { names() == (isTaken ? ["file"] : []) })
            }
        }
    }

    @Test("SFTP-6: what a broken connection has left of an early upload is removed with the next one")
    func brokenEarlyUploads() async throws {
        try await withRemote { remote, folder, _ in
            let names = { (try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) ?? [] }
            let file = try GrowingFile()
            try file.write(GrowingFile.bytes(1 << 20), at: 0)
            let sending = Task { await remote.receive(file.growing, in: .root) }
            let hasBegun = await eventually {
                (file.growing.upload as? EarlyUpload).map { $0.sent > 1 << 19 } ?? false
            }
            try #require(hasBegun)
            #expect(names().count == 1)
            try await remote.connection.session().close()
            file.growing.giveUp()
            await sending.value
            #expect(await eventually { names() == [] })
        }
    }

    @Test("SFTP-5: large files use several connections where the server lets", arguments: [false, true])
    func severalConnections(isAlone: Bool) async throws {
        try await withRemote(isAlone: isAlone) { remote, folder, log in
            let bytes = [UInt8](megabytes: 40)
            let made = try await write(bytes, to: "file", remote, folder)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes))
            let sink = CollectingSink()
            _ = try await remote.read(RemotePath(["file"]), tag: made.tag, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<Int64(bytes.count)) == bytes)
            #expect(try log("connection").filter { $0 == "connection" }.count == (isAlone ? 1 : 4))
            _ = try await write(Array(bytes.dropLast()), to: "file", remote, folder, if: .unchanged(tag: made.tag))
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])).count == bytes.count - 1)
        }
    }
}

extension [UInt8] {
    /// No two parts of a megabyte are the same.
    fileprivate init(megabytes: Int) {
        let pattern = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
        self = []
        for number in 0..<megabytes { self += [UInt8(number)] + pattern.dropFirst() }
    }
}
