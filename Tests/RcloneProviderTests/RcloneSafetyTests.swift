import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import ProviderDescriptors
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneSafetyTests {
    private static func text(_ folder: RcloneFolder, _ path: String) throws -> String {
        try String(contentsOfFile: folder[path], encoding: .utf8)
    }

    @Test("RCLONE-2: others' writes stay, and no hidden file is left")
    func othersWritesStay() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write(Array("old".utf8), to: "file")
            let path = RemotePath(["file"])
            let old = try await remote.entry(at: path)
            try await folder.write(Array("another's".utf8), to: "file")
            for condition in [RemoteCondition.unchanged(tag: old.tag), .absent] {
                await #expect(throws: RemoteConditionFailure.self) {
                    try await withContent(Array("mine".utf8)) {
                        try await remote.write($0, to: path, attributes: RemoteAttributes(), if: condition)
                    }
                }
            }
            #expect(try Self.text(folder, "file") == "another's")
            #expect(
                await eventually {
                    (try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) == ["file"]
                }
            )
        }
    }

    @Test("RCLONE-11: a file whose size the backend does not know is left out, and the others are listed")
    func unknownSizes() async throws {
        let server = try await ScriptedServer(program: "Support/Programs/unsized_files.py")
        defer { server.stop() }
        let source = "rclone::http,url='http://127.0.0.1:\(server.port)/':"
        let reports = Mutex<[String]>([])
        try await RcloneFolder.withRemote(
            source: source, report: { report in reports.withLock { $0.append(report) } }
        ) { _, remote in
            for _ in 1...2 {
                let listing = try await remote.entries(in: .root, from: nil, limit: 10)
                #expect(listing.entries.map(\.name) == ["sized"] && listing.leavesOut)
            }
            #expect(try await remote.list(.root).map(\.size) == [7])
            #expect(reports.withLock { $0.count } == 1)
            #expect(reports.withLock { $0.contains { $0.contains("/unsized") } })
        }
    }

    @Test(
        "RCLONE-2: a file that was replaced is not read as its earlier version",
        arguments: ["", "x", "longer than before"])
    func replacedFilesAreNotRead(_ text: String) async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write(Array("before".utf8), to: "file")
            let path = RemotePath(["file"])
            let old = try await remote.entry(at: path)
            try await folder.write(Array(text.utf8), to: "file")
            for range in [nil, 0..<6, 4..<6] as [Range<Int64>?] {
                let error = await #expect(throws: FileProviderError.self) {
                    _ = try await remote.read(path, tag: old.tag, range: range, into: FixedSizeSink(size: 6))
                }
                #expect(error?.code == .versionNoLongerAvailable)
            }
            try await folder.delete("file")
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await remote.read(path, tag: old.tag, range: nil, into: FixedSizeSink(size: 6))
            }
            #expect(error?.code == .noSuchItem)
        }
    }

    /// Accepts no byte after the end of the file.
    private struct FixedSizeSink: ContentSink {
        var size: Int64

        func write(_ bytes: RawSpan, at offset: Int64) throws {
            if offset + Int64(bytes.byteCount) > size { throw Overflow() }
        }

        func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
            if offset + count > size { throw Overflow() }
        }

        struct Overflow: Error {}
    }

    /// rclone takes files of equal size and time for equal, unless it is told otherwise.
    @Test("RCLONE-2: content of equal size and time is uploaded")
    func equalSizesAndTimesAreUploaded() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write(Array("old".utf8), to: "file")
            let path = RemotePath(["file"])
            let old = try await remote.entry(at: path)
            _ = try await withContent(Array("new".utf8)) {
                try await remote.write($0, to: path, attributes: old.attributes, if: .unchanged(tag: old.tag))
            }
            #expect(try Self.text(folder, "file") == "new")
            #expect(
                try await remote.entry(at: path).attributes.contentModificationDate
                    == old.attributes.contentModificationDate)
        }
    }

    @Test("RCLONE-3: modification times are stored, also before 1970")
    func timesAreStored() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write([1], to: "a file")
            for nanoseconds in [1_234_567_890_123_456_789, -1_500_000_000] as [Int64] {
                let date = FileTimestamp(nanosecondsSince1970: nanoseconds)
                let (entry, notStored) = try await remote.set(
                    RemoteAttributes(contentModificationDate: date, permissions: 0o600), of: RemotePath(["a file"]),
                    kind: .file)
                #expect(entry.attributes.contentModificationDate == date && notStored == .permissions)
                let made = try await withContent([2]) {
                    try await remote.write(
                        $0, to: RemotePath(["\(nanoseconds)"]),
                        attributes: RemoteAttributes(contentModificationDate: date), if: .absent)
                }
                #expect(made.attributes.contentModificationDate == date)
            }
        }
    }

    @Test("RCLONE-3: where the tag is made of the date, setting the date is known to make another tag")
    func datesMakeTags() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write([1], to: "file")
            let before = try await remote.entry(at: RemotePath(["file"]))
            let dated = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_500_000_000))
            let after = try await remote.set(dated, of: RemotePath(["file"]), kind: .file).entry
            #expect((before.tag != after.tag) == remote.traits.datesMakeTags)
        }
        // Of a checksum, and of a date that cannot be set, it is not made.
        let folder = try await RcloneFolder()
        for (precision, hash, makesTags) in [(1, nil, true), (1, "md5", false), (nil, nil, false)]
            as [(Int64?, String?, Bool)]
        {
            var features = RcloneFeatures()
            features.precision = precision
            features.hash = hash
            let remote = try RcloneProviderFactory.remote(
                folder.domain.source, folder.settings, in: folder.directory["other"], features
            ) { _ in }
            #expect(remote.traits.datesMakeTags == makesTags)
            await remote.close()
        }
        await folder.dispose()
    }

    @Test(
        "RCLONE-3: a date that the backend takes with content only is not sent again",
        arguments: [
            ("Failed to touch: can't set modified time without deleting existing object", true),
            ("Failed to touch: can't set modified time", true),
            ("Failed to touch: dial tcp 127.0.0.1:1: connect: connection refused", false),
        ])
    func fixedDates(_ text: String, _ isFixed: Bool) {
        #expect(RcloneFailure(status: 500, text: text).isOfFixedDates == isFixed)
    }

    @Test("RCLONE-4: calls go on when rclone is killed")
    func killedProgramsAreStartedAgain() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.write(Array("content".utf8), to: "file")
            _ = try await remote.entry(at: .root)
            for _ in 0..<3 {
                let killed = try await Self.killPrograms(of: folder)
                #expect(killed > 0)
                #expect(try await remote.entry(at: RemotePath(["file"])).size == 7)
            }
            _ = try await Self.killPrograms(of: folder)
            // A change is not repeated, because rclone may have made it.
            for attempt in 0..<10 {
                do {
                    _ = try await remote.makeDirectory(at: RemotePath(["d"]), attributes: RemoteAttributes())
                } catch let error as FileProviderError where attempt < 9 && error.code == .serverUnreachable {
                    // The end of the killed process may not have been noticed yet.
                    try await Task.sleep(for: .milliseconds(100 << min(attempt, 4)))
                    continue
                }
                break
            }
            #expect(try await remote.entry(at: RemotePath(["d"])).kind == .directory)
        }
    }

    /// Kills rclone by the configuration in its environment.
    static func killPrograms(of folder: RcloneFolder) async throws -> Int {
        let configuration = folder.directory["rclone.conf"].string
        let processes = try processes(with: configuration)
        for process in processes { kill(process, SIGKILL) }
        _ = await eventually { (try? Self.processes(with: configuration).isEmpty) ?? true }
        return processes.count
    }

    /// The processes of rclone that have a configuration in their environment.
    static func processes(with configuration: String) throws -> [Int32] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap(Int32.init).filter { process in
            let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
            guard name == "rclone\n", let environment = FileManager.default.contents(atPath: "/proc/\(process)/environ")
            else { return false }
            return String(decoding: environment, as: UTF8.self).contains("RCLONE_CONFIG=\(configuration)\0")
        }
    }

    @Test("RCLONE-5: rclone's address needs credentials, which are not in its arguments")
    func credentialsAreSecret() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            _ = try await remote.entry(at: .root)
            let process = try #require(try Self.processes(with: folder.directory["rclone.conf"].string).first)
            let arguments = String(
                decoding: FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data(), as: UTF8.self)
            let environment = String(
                decoding: FileManager.default.contents(atPath: "/proc/\(process)/environ") ?? Data(), as: UTF8.self)
            let password = try #require(environment.split(separator: "\0").first { $0.hasPrefix("RCLONE_RC_PASS=") })
            #expect(password.count > 40 && !arguments.contains(password.dropFirst("RCLONE_RC_PASS=".count)))
            let ports = try await Command.shell("ss -Hltnp 2>/dev/null | grep pid=\(process), | awk '{print $4}'").line
            guard let port = ports.split(separator: ":").last else { return }
            #expect(ports.hasPrefix("127.0.0.1:"))
            let answer = try await Command.run(
                "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST",
                "http://127.0.0.1:\(port)/operations/list")
            #expect(answer.line == "401")
        }
    }

    @Test("RCLONE-5: rclone ends when its standard input does")
    func programsEndWithTheDaemon() async throws {
        let folder = try await RcloneFolder()
        let configuration = folder.directory["rclone.conf"].string
        let remote = try folder.remote()
        _ = try await remote.entry(at: .root)
        #expect(try Self.processes(with: configuration).count == 1)
        try await remote.host.running().endInput()
        #expect(await eventually { (try? Self.processes(with: configuration).isEmpty) ?? false })
        await remote.close()
        await folder.dispose()
    }

    @Test(
        "RCLONE-6: what is wrong is said in words",
        arguments: [
            ("exit 127", FileProviderError.Code.serverUnreachable, "fails"),
            ("echo rclone v1.53.3", .serverUnreachable, "too old"),
            (
                "[ $1 = version ] && exec $RCLONE version; echo 'Failed to start: no' >&2; exit 1", .serverUnreachable,
                "no"
            ),
            (
                "[ $1 = version ] && exec $RCLONE version; echo 'unable to decrypt configuration' >&2; exit 1",
                .notAuthenticated, "--config-password-stdin"
            ),
        ])
    func brokenPrograms(_ program: String, _ code: FileProviderError.Code, _ words: String) async throws {
        try await RcloneFolder.withRemote(program: program) { _, remote in
            let error = await #expect(throws: FileProviderError.self) { try await remote.entry(at: .root) }
            #expect(error?.code == code && error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
    }

    @Test("RCLONE-6: a missing program and an unknown remote are said in words")
    func missingPrograms() async throws {
        let folder = try await RcloneFolder()
        var settings = folder.settings
        let environment = folder.environment
        let error = await #expect(throws: FileProviderError.self) {
            _ = try await RcloneProviderFactory().probe("rclone:nothing:x", settings)
        }
        #expect(error?.code == .providerNotFound && error?.message.contains("rclone listremotes") == true)
        settings.environment = { environment.merging(["YONDER_RCLONE": "/nowhere/rclone"]) { $1 } }
        let missing = await #expect(throws: FileProviderError.self) {
            _ = try await RcloneProviderFactory().probe(folder.domain.source, settings)
        }
        #expect(missing?.code == .serverUnreachable && missing?.message.contains("not installed") == true)
        await folder.dispose()
    }

    @Test(
        "RCLONE-6: failures of backends",
        arguments: [
            (
                "couldn't find root directory ID: couldn't fetch token - maybe it has expired? - refresh with \"rclone config "
                    + "reconnect drv:\": oauth2: \"invalid_grant\"", FileProviderError.Code.notAuthenticated,
                "rclone config reconnect drv:"
            ),
            (
                "Propfind \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused",
                .serverUnreachable, ""
            ),
            ("write /x: no space left on device", .insufficientQuota, ""),
            ("open /x: permission denied", .fileReadNoPermission, ""),
            ("open /x: file name too long", .cannotSynchronize, ""),
            ("something else", .providerDomainTemporarilyUnavailable, "something else"),
        ])
    func failures(_ text: String, _ code: FileProviderError.Code, _ words: String) {
        let error = RcloneFailure(status: 500, text: text).error("drv:")
        #expect(error.code == code && (words.isEmpty || error.message.contains(words)))
    }

    @Test(
        "RCLONE-7: odd names come and go",
        arguments: [
            "new\nline", "per%41cent%2F", " leading and trailing ", "\u{240A} symbol", "\u{FF0E}", "\u{FF0E}\u{FF0E}",
            "wide\u{FF0F}slash", "tab\t\u{7F}", "\u{201B}quote", "\u{201B}\u{2409}", "[bracket]", "a:b", "\u{2400}",
            "\u{201B}\u{FF0F}",
            "\u{201B}\u{201B}", "ümlaut",
            "back\\slash", "\"quoted\"",
        ])
    func oddNames(_ name: String) async throws {
        try await RcloneFolder.withRemote { folder, remote in
            let path = RemotePath([name])
            _ = try await withContent(Array("content".utf8)) {
                try await remote.write($0, to: path, attributes: RemoteAttributes(), if: .absent)
            }
            // rclone doubles its quote on the disk.
            let hasQuote = name.unicodeScalars.contains("\u{201B}")
            #expect(hasQuote || FileManager.default.fileExists(atPath: folder[name]))
            #expect(try await remote.entries(in: .root, from: nil, limit: 10).entries.map(\.name) == [name])
            let content = try folder.directory.makeFile("same", "content".utf8)
            let descriptor = try FileDescriptor.open(content, .readOnly)
            #expect(
                try await ContentSource(descriptor: descriptor, size: 7).equals {
                    _ = try await remote.read(path, tag: nil, range: nil, into: $0)
                })
            let directory = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes())
            let inner = directory.appending(name)
            _ = try await remote.makeDirectory(at: inner, attributes: RemoteAttributes())
            _ = try await remote.move(inner, to: directory.appending("moved"), kind: .directory)
            _ = try await remote.move(directory.appending("moved"), to: inner, kind: .directory)
            #expect(try await remote.entry(at: inner).kind == .directory)
            try await remote.delete(path, kind: .file, if: .always)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == ["directory"])
        }
    }

    @Test("RCLONE-2: a directory with an item that rclone does not list is not removed")
    func unlistedItemsStay() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            try await folder.makeDirectory("d")
            try FileManager.default.createSymbolicLink(atPath: folder["d/link"], withDestinationPath: "elsewhere")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath(["d"]), kind: .directory, if: .empty)
            }
            #expect(FileManager.default.fileExists(atPath: folder["d"]))
        }
    }

    @Test func largeContentsComeAndGo() async throws {
        try await RcloneFolder.withRemote { folder, remote in
            let bytes = (0..<5_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
            try await withContent(bytes) { source in
                let path = RemotePath(["large"])
                let made = try await remote.write(source, to: path, attributes: RemoteAttributes(), if: .absent)
                #expect(made.size == Int64(bytes.count))
                #expect(
                    try await source.equals { _ = try await remote.read(path, tag: made.tag, range: nil, into: $0) })
            }
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.directory["remote"].string).allSatisfy {
                    $0.hasPrefix("rclone-")
                })
        }
    }

    @Test func sources() throws {
        let source = try RcloneSource("rclone:drive:a b/")
        #expect(source.root == "drive:a b" && source.remote == "drive:")
        #expect(source.directory(RemotePath(["x", "y"])) == "drive:a b/x/y")
        #expect(try RcloneSource("rclone:drive:").directory(RemotePath(["x"])) == "drive:x")
        #expect(source.target(RemotePath(["50%"])) == "/%5Bdrive%3Aa%20b%5D/50%25")
        for wrong in ["rclone:", "rclone:/folder", "rclone:-x:", "rclone:a:b]c", "rclone:a:\n"] {
            #expect(throws: FileProviderError.self) { try RcloneSource(wrong) }
        }
    }
}
