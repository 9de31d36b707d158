import Daemon
import FileProvider
import FileProviderTesting
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Remotes that fail, each in its way: what a process sees, and what stays.
    @Suite struct FailingRemote {
        /// What `cat` of a dataless file and `ls` of a dataless directory say for each code that a provider throws.
        static let words: [(FileProviderError.Code, String)] = [
            (.serverUnreachable, "No route to host"),
            (.notAuthenticated, "Key was rejected by service"),
            (.insufficientQuota, "Disk quota exceeded"),
            (.cannotSynchronize, "Input/output error"),
            (.excludedFromSync, "Operation not supported"),
            (.filenameCollision, "File exists"),
            (.deletionRejected, "Operation not permitted"),
            (.directoryNotEmpty, "Directory not empty"),
            (.syncAnchorExpired, "Input/output error"),
            (.featureUnsupported, "Operation not supported"),
            (.fileReadNoPermission, "Permission denied"),
            (.timedOut, "Connection timed out"),
            (.malformedResponse, "Input/output error"),
            (.localVersionConflictingWithServer, "Stale file handle"),
            (.providerNotFound, "Transport endpoint is not connected"),
        ]

        @Test("each code has its errno on read", arguments: words) func errnoOnRead(
            code: FileProviderError.Code, words: String
        ) async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
                tree.addDirectory("dir", identifier: "dir")
            } _: { mount async throws in
                mount.provider.faults.fail(.fetch, with: FileProviderError(code), times: nil)
                mount.provider.faults.fail(.enumerate, with: FileProviderError(code), times: nil)
                try await Command.run("cat", mount["file"]).expectFailure(saying: words)
                let list = try await Command.run("ls", mount["dir"])
                #expect(list.status != 0)
                #expect(list.errors.contains(words), "\(list.errors)")
                // And it is no verdict for ever.
                mount.provider.faults.clear()
                #expect(
                    try await eventually { try await Command.run("cat", mount["file"]).output == "text" })
                #expect(try await Command.run("ls", mount["dir"]).status == 0)
                // Nor is the warning.
                let warnings = mount.host.engine.warnings
                #expect(await eventually { !warnings.texts.contains { $0.contains("input/output error") } })
            }
        }

        /// Reads a file of bytes that are all 1 through one handle to its end, and again where that fails.
        private static let patientReader = """
            import os, sys, time
            file = os.open(sys.argv[1], os.O_RDONLY)
            size, offset, failures, others = os.fstat(file).st_size, 0, 0, 0
            while offset < size:
                try:
                    piece = os.pread(file, 65536, offset)
                except OSError:
                    failures += 1
                    if failures > 100:
                        raise
                    time.sleep(0.05)
                    continue
                # What is fetched ahead of it is to fail while it has the file open.
                time.sleep(0.02)
                others += len(piece) - piece.count(1)
                offset += len(piece)
            print(offset, others)
            """

        private static let ones = RemoteContent.bytes([UInt8](repeating: 1, count: 1 << 20))

        @Test(
            "OPEN-1: who goes on with an open file after its transfer was given up reads the same content",
            arguments: [
                FaultScript.Effect.failTransfer(after: 300_000, FileProviderError(.versionNoLongerAvailable)),
                .surplus(1),
            ])
        func goesOn(after effect: FaultScript.Effect) async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("file", content: Self.ones, identifier: "file")
            } _: { mount async throws in
                mount.provider.faults.add(effect, to: .fetch, times: 1)
                let read = try await Command.run("python3", "-c", Self.patientReader, mount["file"])
                #expect(read.status == 0, "\(read.errors)")
                #expect(read.line == "\(1 << 20) 0")
                #expect(mount.provider.log.count(of: .fetch) >= 2)
            }
        }

        @Test("OPEN-1: what never came of an open file is given up when that is closed") func givenUp() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("file", content: Self.ones, identifier: "file")
            } _: { mount async throws in
                mount.provider.faults.add(
                    .failTransfer(after: 300_000, FileProviderError(.versionNoLongerAvailable)), to: .fetch, times: nil)
                #expect(try await Command.run("cat", mount["file"]).status == 1)
                let database = mount.host.replica.database
                let number = try #require(try database.lookup("file", in: .root).inode?.number)
                #expect(await eventually { (try? database.inode(number)?.content) == .dataless })
                #expect(try database.inode(number)?.localBytes == 0)
            }
        }

        @Test("ERROR-6: errors of no known kind are tried again by themselves") func triesAgain() async throws {
            struct Hiccup: Error {}
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                mount.provider.faults.fail(.enumerate, of: .rootContainer, with: Hiccup())
                mount.provider.faults.fail(.fetch, with: Hiccup(), times: 2)
                #expect(try await Command.run("cat", mount["file"]).output == "text")
                #expect(mount.provider.log.count(of: .fetch) == 3)
            }
        }

        @Test("ERROR-4: a failure stays readable until it goes well") func saysWhy() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                let why = ["getfattr", "--only-values", "-n", "user.yonder.error", mount["file"]]
                _ = try await Command.run("ls", mount.path.string)
                #expect(try await Command(why).run().status == 1)
                mount.provider.faults.fail(
                    .fetch, with: FileProviderError(.fileReadNoPermission, "the badge is out of date"), times: nil)
                #expect(try await Command.run("cat", mount["file"]).status == 1)
                #expect(
                    try await eventually {
                        let text = try await Command(why).run().output
                        return text.contains("fileReadNoPermission") && text.contains("the badge is out of date")
                    })
                mount.provider.faults.clear()
                #expect(try await Command.run("cat", mount["file"]).output == "text")
                #expect(try await eventually { try await Command(why).run().status == 1 })
            }
        }

        @Test("READ-7: an unreachable remote is not stormed, and what is here works") func latches() async throws {
            try await ProvidedMount.run { tree in
                for number in 0..<50 { tree.addFile("file\(number)", content: RemoteContent("\(number)")) }
            } _: { mount async throws in
                #expect(try await Command.run("cat", mount["file7"]).output == "7")
                mount.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
                mount.provider.log.clear()
                let outcome = try await Command.shell("cat \"$1\"/*", mount.path.string)
                #expect(outcome.output == "7")
                #expect(outcome.errors.split(separator: "\n").count == 49)
                #expect(mount.provider.log.calls.count < 5, "one probe, not one call for each")
                #expect(mount.host.engine.connection.state == .offline)
                mount.provider.faults.clear()
                #expect(await eventually(within: .seconds(20)) { mount.host.engine.connection.state == .online })
                #expect(try await Command.shell("cat \"$1\"/* | wc -c", mount.path.string).line == "90")
            }
        }

        @Test("READ-2: too few or too many bytes are EIO, reported, and never a short file") func wrongLengths()
            async throws
        {
            try await ProvidedMount.run { tree in
                tree.addFile("short", content: .pattern(size: 100_000, seed: 1), identifier: "short")
                tree.addFile("long", content: .pattern(size: 100_000, seed: 1), identifier: "long")
                tree.addFile("other", content: .pattern(size: 100_000, seed: 1), identifier: "other")
            } _: { mount async throws in
                mount.provider.faults.add(.cutFetch(60_000), to: .fetch, of: "short")
                mount.provider.faults.add(.surplus(10), to: .fetch, of: "long")
                mount.provider.faults.add(.contentVersion([1, 2, 3]), to: .fetch, of: "other")
                for name in ["short", "long"] {
                    let read = try await Command.run("md5sum", mount[name])
                    #expect(read.errors.contains("Input/output error"), "\(name): \(read.errors)")
                    #expect(mount.host.engine.warnings.texts.contains { $0.contains("'\(name)'") })
                }
                #expect(try await Command.run("md5sum", mount["other"]).errors.contains("Stale file handle"))
                mount.provider.faults.clear()
                for name in ["short", "long", "other"] {
                    #expect(try await Command.run("md5sum", mount[name]).status == 0)
                }
                let sums = try await Command.shell(
                    "cd \"$1\" && md5sum * | cut -d ' ' -f 1 | uniq | wc -l", mount.path.string)
                #expect(sums.line == "1")
            }
        }

        @Test("NAME-2: names that no file system takes are not shown, and reported") func oddNames() async throws {
            try await ProvidedMount.run { tree in
                for name in ["a/b", "..", ".", "", "nul\0name", String(repeating: "x", count: 256)] {
                    tree.addFile(name, content: RemoteContent("x"))
                }
                tree.addFile("fine", content: RemoteContent("x"))
                tree.edit(tree.addFile("negative", content: RemoteContent("x"))) { $0.documentSize = -1 }
                tree.edit(tree.addFile("without a size", content: RemoteContent("x"))) { $0.documentSize = nil }
            } _: { mount async throws in
                #expect(try await Command.run("ls", "-A", mount.path.string).output == "fine\n")
                #expect(mount.host.engine.warnings.texts.count == 8, "\(mount.host.engine.warnings.texts)")
            }
        }

        @Test("NAME-7: two items of one name are both shown") func duplicateNames() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("name.txt", content: RemoteContent("one"), identifier: "one")
                tree.addFile("name.txt", content: RemoteContent("two"), identifier: "two")
            } _: { mount async throws in
                #expect(try await Command.run("ls", mount.path.string).output == "name (2).txt\nname.txt\n")
                #expect(try await Command.run("cat", mount["name.txt"]).output == "one")
                #expect(try await Command.run("cat", mount["name (2).txt"]).output == "two")
                #expect(mount.host.engine.warnings.texts.contains { $0.contains("name.txt") })
                mount.provider.change { $0.delete("one") }
                #expect(
                    try await eventually {
                        try await Command.shell("cd \"$1\" && ls && cat name.txt", mount.path.string).output
                            == "name.txt\ntwo"
                    })
            }
        }

        @Test("NAME-8: page tokens that loop end the listing with EIO") func loopingTokens() async throws {
            try await ProvidedMount.run(options: .with(\.pageSize, 2)) { tree in
                for number in 0..<6 { tree.addFile("file\(number)", content: RemoteContent("x")) }
            } _: { mount async throws in
                mount.provider.faults.add(.pageToken(nil), to: .enumerate)
                let outcome = try await Command.run("ls", mount.path.string)
                #expect(outcome.status != 0)
                #expect(outcome.errors.contains("Input/output error"), "\(outcome.errors)")
                #expect(mount.host.engine.warnings.texts.contains { $0.contains("page token") })
                #expect(mount.provider.log.count(of: .enumerate, .rootContainer) < 5)
                mount.provider.faults.clear()
                #expect(try await Command.shell("ls \"$1\" | wc -l", mount.path.string).line == "6")
            }
        }

        @Test("NAME-8: the same anchor with more to come is reported, not looped on") func sameAnchor() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("file", content: RemoteContent("x"), identifier: "file")
            } _: { mount async throws in
                mount.provider.log.clear()
                mount.provider.faults.add(.sameAnchorMoreComing, to: .changes)
                mount.provider.change { $0.addFile("new", content: RemoteContent("x")) }
                #expect(
                    await eventually { mount.host.engine.warnings.texts.contains { $0.contains("anchor") } })
                #expect(mount.provider.log.count(of: .changes) < 10)
                mount.provider.faults.clear()
                mount.provider.change { $0.addFile("newer", content: RemoteContent("x")) }
                #expect(
                    try await eventually {
                        try await Command.run("ls", mount.path.string).output == "file\nnew\nnewer\n"
                    })
            }
        }

        @Test("an empty answer of a remote whose root is gone deletes nothing") func absentIsNotEmpty() async throws {
            try await ProvidedMount.run { tree in
                tree.addDirectory("dir", identifier: "dir")
                tree.addFile("file", in: "dir", content: RemoteContent("x"), identifier: "file")
            } _: { mount async throws in
                #expect(try await Command.run("cat", mount["dir/file"]).output == "x")
                mount.provider.faults.fail(.enumerate, with: FileProviderError.noSuchItem("dir"), times: nil)
                mount.provider.change { $0.expireAnchors() }
                _ = try? await mount.host.engine.refresh()
                // A lookup says that it is there after all.
                #expect(try await Command.run("cat", mount["dir/file"]).output == "x")
            }
        }
    }
}
