import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import TestSupport
import Testing

@testable import S3Provider

/// Keys of a bucket that form no tree of files are shown nevertheless.
@Suite(.tags(.server)) struct KeyTests {
    static let odd = [
        "plain", "a//b", "a/./c", "a/../d", "both", "both-between", "both/inner", "marked/", "content/", "content/x",
        "%yonder-mine", "a/%yonder-file", "trailing//", "ünï", "q?&=+ %41#;",
    ]

    /// All files with their contents, by path, walked directory by directory.
    private func walk(_ remote: S3Remote, _ path: RemotePath = .root, limit: Int) async throws -> [String: String] {
        var found: [String: String] = [:]
        var token: [UInt8]?
        repeat {
            let part = try await remote.entries(in: path, from: token, limit: limit)
            for entry in part.entries {
                let place = path.appending(entry.name)
                let name = place.names.joined(separator: "/")
                #expect(try await remote.entry(at: place).kind == entry.kind, "\(name)")
                switch entry.kind {
                case .directory:
                    found[name + "/"] = ""
                    found.merge(try await walk(remote, place, limit: limit)) { one, _ in "twice: \(one)" }
                case .file:
                    let sink = CollectingSink()
                    _ = try await remote.read(place, tag: entry.tag, range: nil, into: sink)
                    found[name] = String(decoding: try sink.bytes(in: 0..<(entry.size ?? 0)), as: UTF8.self)
                case .symbolicLink: found[name] = entry.attributes.symbolicLinkTarget
                }
            }
            token = part.next
        } while token != nil
        return found
    }

    @Test(arguments: [1000, 1])
    func nothingIsLost(limit: Int) async throws {
        try await withBucket { bucket, remote in
            for key in Self.odd {
                try await bucket.put(bucket.prefix + key, key == "marked/" || key == "trailing//" ? "" : key)
            }
            let found = try await walk(remote, limit: limit)
            #expect(
                found == [
                    "plain": "plain", "a/": "", "a/%yonder-empty/": "", "a/%yonder-empty/b": "a//b",
                    "a/%yonder-dot/": "", "a/%yonder-dot/c": "a/./c", "a/%yonder-dotdot/": "",
                    "a/%yonder-dotdot/d": "a/../d", "both": "both", "both-between": "both-between",
                    "both%yonder-directory/": "", "both%yonder-directory/inner": "both/inner", "marked/": "",
                    "content/": "", "content/%yonder-content": "content/", "content/x": "content/x",
                    "%yonder-name-%yonder-mine": "%yonder-mine",
                    "a/%yonder-name-%yonder-file": "a/%yonder-file", "trailing/": "", "trailing/%yonder-empty/": "",
                    "ünï": "ünï", "q?&=+ %41#;": "q?&=+ %41#;",
                ])
            #expect(try await tree(remote, limit: limit == 1 ? 2 : limit) == Set(found.keys))
        }
    }

    private func tree(_ remote: S3Remote, limit: Int) async throws -> Set<String> {
        var (found, token): (Set<String>, [UInt8]?) = ([], nil)
        repeat {
            let part = try await remote.tree(below: .root, from: token, limit: limit)
            for (parent, entry) in part.entries {
                let name = parent.appending(entry.name).names.joined(separator: "/")
                #expect(found.insert(name + (entry.kind == .directory ? "/" : "")).inserted, "twice: \(name)")
            }
            token = part.next
        } while token != nil
        return found
    }

    @Test("S3-1: each part of a key has a name of its own, as a file and as a directory, and is found by it")
    func namesOfParts() {
        let parts = ["a", ".", "..", "p%yonder-q", "x%yonder-directory", "%yonder-name-y", "%yonder-directory-name-z"]
        for part in parts {
            #expect(KeyNames.part(of: KeyNames.name(of: part)) == part)
            #expect(KeyNames.part(of: KeyNames.directoryName(of: part)) == part)
            #expect(KeyNames.isDirectoryOnly(KeyNames.directoryName(of: part)))
            #expect(!KeyNames.isDirectoryOnly(KeyNames.name(of: part)))
        }
        let names = parts.flatMap { [KeyNames.name(of: $0), KeyNames.directoryName(of: $0)] }
        #expect(Set(names).count == names.count)
    }

    @Test func namesThatMeanSomethingElseAreRefused() async throws {
        try await withBucket { _, remote in
            try await withContent([1]) { source in
                for name in [
                    "a%yonder-directory", "%yonder-empty", "x.rclonelink", String(repeating: "x", count: 1020),
                ] {
                    let error = await failure {
                        _ = try await remote.write(
                            source, to: RemotePath([name]), attributes: RemoteAttributes(), if: .absent)
                    }
                    #expect(error?.code == .cannotSynchronize, "\(name.prefix(30))")
                }
            }
        }
    }

    @Test func linksAreObjectsAsRcloneMakesThem() async throws {
        try await withBucket { bucket, remote in
            let made = try await remote.makeSymbolicLink(
                at: RemotePath("link"), to: "some/where ü", attributes: RemoteAttributes())
            #expect(made.kind == .symbolicLink)
            #expect(try await bucket.get(bucket.prefix + "link.rclonelink").text == "some/where ü")
            try await bucket.put(bucket.prefix + "both", "a file")
            try await bucket.put(bucket.prefix + "both.rclonelink", "target")
            let found = try await walk(remote, limit: 1000)
            #expect(found == ["link": "some/where ü", "both": "a file", "both.rclonelink": "target"])
            let moved = try await remote.move(RemotePath("link"), to: RemotePath("other"), kind: .symbolicLink)
            #expect(moved.attributes.symbolicLinkTarget == "some/where ü")
            try await remote.delete(RemotePath("other"), kind: .symbolicLink, if: .unchanged(tag: moved.tag))
            #expect(try await bucket.keys() == [bucket.prefix + "both", bucket.prefix + "both.rclonelink"])
        }
    }

    @Test("S3-2: the links of a directory are read some at a time, and a target that was read is not read again")
    func manyLinks() async throws {
        try await StrictStoreProgram.withRemote(["delay=0.1"]) { store, remote, scratch in
            let names = (10..<20).map { "\($0)" }
            for name in names { try await store.put("to \(name)", to: "top/\(name).rclonelink") }
            let listed = try await remote.entries(in: .root, from: nil, limit: 100).entries
            #expect(listed.map(\.name) == names)
            let targets: [String?] = names.map { "to \($0)" }
            #expect(listed.map(\.attributes.symbolicLinkTarget) == targets)
            let most = try Int(await store.ask("curl -sS \"$at/most\"")) ?? 0
            #expect(most > 1)
            let before = try await store.log().count
            let again = try store.remote(stateDirectory: scratch["state"])
            try await withCleanUp({ await again.close() }) {
                let walked = try await again.tree(below: .root, from: nil, limit: 100).entries
                #expect(walked.map { $0.entry.attributes.symbolicLinkTarget } == targets)
            }
            #expect(try await store.log().dropFirst(before) == ["GET"])
        }
    }

    @Test("S3-16: the content of a directory's own object is not renamed, nor what else is in the directory")
    func contentOfDirectoryStays() async throws {
        try await withBucket { bucket, remote in
            let keys = ["a/", "a/x"].map { bucket.prefix + $0 }
            for key in keys { try await bucket.put(key, "text") }
            let refused = await failure {
                _ = try await remote.move(RemotePath(["a", KeyNames.content]), to: RemotePath("b"), kind: .file)
            }
            #expect(refused?.code == .cannotSynchronize)
            #expect(try await bucket.keys() == keys)
        }
    }

    @Test("NAME-9: targets of links that are not UTF-8 go to the bucket and come from there unchanged")
    func targetsOfBytes() async throws {
        try await withBucket { bucket, remote in
            _ = try await bucket.client.send { [client = bucket.client, prefix = bucket.prefix] in
                client.request("PUT", prefix + "theirs.rclonelink", body: .bytes([0xFF]))
            }
            #expect(try await remote.entry(at: RemotePath("theirs")).attributes.symbolicLinkTarget == "\u{10FFFF}")
            let made = try await remote.makeSymbolicLink(
                at: RemotePath("ours"), to: "a\u{10FFFF}", attributes: RemoteAttributes())
            #expect(made.attributes.symbolicLinkTarget == "a\u{10FFFF}")
            #expect(try await bucket.get(bucket.prefix + "ours.rclonelink").body == [0x61, 0xFF])
        }
    }

    @Test("the target of a link that another client writes while it is read is not kept for the listed version")
    func targetOfAnotherVersion() async throws {
        try await StrictStoreProgram.withRemote(["overtakes=GET top/link.rclonelink"]) { store, remote, _ in
            try await store.put("first", to: "top/link.rclonelink")
            _ = try await remote.entry(at: RemotePath("link"))
            try await store.put("first", to: "top/link.rclonelink")
            #expect(try await remote.entry(at: RemotePath("link")).attributes.symbolicLinkTarget == "first")
        }
    }

    @Test(
        "S3-1: the object of a link is a file where the link's name is taken, wherever a part of a listing ends",
        arguments: [1000, 1])
    func linksWhoseNamesAreTaken(limit: Int) async throws {
        try await withBucket { bucket, remote in
            for key in [
                "a.rclonelink", "a.z", "a/x", "both", "both.rclonelink", "d/b.rclonelink", "d/b/y", "own.rclonelink",
            ] { try await bucket.put(bucket.prefix + key, "of \(key)") }
            let found = try await walk(remote, limit: limit)
            #expect(
                found == [
                    "a.rclonelink": "of a.rclonelink", "a.z": "of a.z", "a/": "", "a/x": "of a/x",
                    "both": "of both", "both.rclonelink": "of both.rclonelink", "d/": "",
                    "d/b.rclonelink": "of d/b.rclonelink", "d/b/": "", "d/b/y": "of d/b/y",
                    "own": "of own.rclonelink",
                ])
            #expect(try await tree(remote, limit: limit == 1 ? 2 : limit) == Set(found.keys))
        }
    }

    @Test(
        "S3-1: an object that is called like a symbolic link and cannot be read is shown as a file, and stays",
        arguments: ["plain", "ignores"])
    func unreadableLinks(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "archived=top/x.rclonelink"]) { store, remote, _ in
            for name in ["x", "y"] { try await store.put("target", to: "top/\(name).rclonelink") }
            let listed = try await remote.entries(in: .root, from: nil, limit: 10).entries
            #expect(listed.map(\.name) == ["x.rclonelink", "y"])
            #expect(listed.map(\.kind) == [.file, .symbolicLink])
            let walked = try await remote.tree(below: .root, from: nil, limit: 10).entries
            #expect(walked.map { $0.entry.name } == ["x.rclonelink", "y"])
            #expect(try await remote.entry(at: RemotePath("x.rclonelink")).kind == .file)
            let missing = await failure { _ = try await remote.entry(at: RemotePath("x")) }
            #expect(missing?.code == .noSuchItem)
            let refused = await failure {
                _ = try await remote.makeSymbolicLink(
                    at: RemotePath("x"), to: "ours", attributes: RemoteAttributes())
            }
            #expect(refused?.code == .cannotSynchronize)
            #expect(try await store.log().filter { $0 == "PUT top/x.rclonelink" }.count == 1)
        }
    }

    @Test("S3-1: an object that is called like a symbolic link and is longer than its listing says is shown as a file")
    func overlongLinks() async throws {
        let key = "top/x.rclonelink"
        try await StrictStoreProgram.withRemote(["outdated=\(key)"]) { store, remote, _ in
            try await store.put("target", to: key)
            let first = try await remote.entries(in: .root, from: nil, limit: 10).entries
            #expect(first.map(\.name) == ["x"])
            try await store.put(String(repeating: "x", count: 5000), to: key)
            // One that has not read the first target.
            let scratch = try TemporaryDirectory()
            defer { scratch.remove() }
            let next = try store.remote(stateDirectory: scratch.makeDirectory("state"))
            try await withCleanUp({ await next.close() }) {
                let listed = try await next.entries(in: .root, from: nil, limit: 10).entries
                #expect(listed.map(\.name) == ["x.rclonelink"] && listed.map(\.kind) == [.file])
            }
        }
    }

    @Test func directoriesStayWhenTheyAreEmptiedHere() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "implicit/one", "1")
            try await bucket.put(bucket.prefix + "moving/one", "1")
            try await bucket.put(bucket.prefix + "deep/er/one", "1")
            let one = try await remote.entry(at: RemotePath("implicit/one"))
            try await remote.delete(RemotePath("implicit/one"), kind: .file, if: .unchanged(tag: one.tag))
            #expect(try await remote.entry(at: RemotePath("implicit")).kind == .directory)
            _ = try await remote.move(RemotePath("moving/one"), to: RemotePath("one"), kind: .file)
            #expect(try await remote.entry(at: RemotePath("moving")).kind == .directory)
            try await remote.delete(RemotePath("deep/er"), kind: .directory, if: .always)
            #expect(try await remote.entries(in: RemotePath("deep"), from: nil, limit: 10).entries.isEmpty)
            let missing = await failure {
                _ = try await remote.entries(in: RemotePath("deep/er"), from: nil, limit: 10)
            }
            #expect(missing?.code == .noSuchItem)
            try await remote.delete(RemotePath("deep"), kind: .directory, if: .always)
            #expect(try await bucket.keys(bucket.prefix + "deep").isEmpty)
        }
    }

    /// Two Unicode forms of one text, and what makes one character with the slash before it.
    @Test func namesAreBytes() async throws {
        try await withBucket { bucket, remote in
            let forms = ["n\u{E9}", "ne\u{301}", "\u{301}a"]
            let names = Set(forms.map { Array($0.utf8) })
            for (number, form) in forms.enumerated() {
                try await bucket.put(bucket.prefix + "\(form)/", "")
                for name in forms {
                    try await withContent(Array(name.utf8)) {
                        _ = try await remote.write(
                            $0, to: RemotePath([form, name]),
                            attributes: RemoteAttributes(
                                contentModificationDate: FileTimestamp(seconds: Int64(number * 10 + name.utf8.count))),
                            if: .absent)
                    }
                }
            }
            _ = try await remote.move(RemotePath(["\u{301}a"]), to: RemotePath(["a"]), kind: .directory)
            let again = try bucket.remote()
            for (number, folder) in ["n\u{E9}", "ne\u{301}", "a"].enumerated() {
                let entries = try await again.entries(in: RemotePath([folder]), from: nil, limit: 10).entries
                #expect(Set(entries.map { Array($0.name.utf8) }) == names)
                for entry in entries {
                    let date = FileTimestamp(seconds: Int64(number * 10 + entry.name.utf8.count))
                    #expect(entry.attributes.contentModificationDate == date, "\(folder)/\(entry.name)")
                }
            }
            await again.close()
        }
    }

    @Test func aDirectoryIsNotTakenForOneThatIsWrittenInAnotherForm() async throws {
        try await withBucket { bucket, remote in
            _ = try await remote.makeDirectory(at: RemotePath(["n\u{E9}"]), attributes: RemoteAttributes())
            let file = RemotePath(["ne\u{301}", "only"])
            try await bucket.put(bucket.prefix + "ne\u{301}/only", "x")
            let tag = try await remote.entry(at: file).tag
            try await remote.delete(file, kind: .file, if: .unchanged(tag: tag))
            #expect(try await remote.entry(at: file.parent).kind == .directory)
        }
    }
}
