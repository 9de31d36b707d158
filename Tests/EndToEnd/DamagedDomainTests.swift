import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A domain whose database, `domain.json` or content files are damaged, as a user meets it.
    @Suite struct DamagedDomain {
        private func replica(_ yonder: Installation) -> FilePath { yonder.directory["state/domains/mount"] }

        /// A file that was read, and one that was written while nothing is sent; then unmounted.
        private func prepare(_ yonder: Installation) async throws {
            try yonder.write("alpha", to: "a")
            try yonder.write("beta", to: "b")
            try await yonder.mountSource()
            _ = try await yonder.shell("cat a b")
            #expect(try await yonder.yonder("wait", "--downloads", "--timeout", "20").status == 0)
            #expect(try await yonder.yonder("pause", "mount").status == 0)
            _ = try await yonder.shell("printf precious > mine")
            #expect(try await yonder.yonder("unmount", "mount").status == 0)
        }

        private func write(_ bytes: [UInt8], at offset: UInt64, to path: String) throws {
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            defer { try? handle.close() }
            try handle.seek(toOffset: offset)
            try handle.write(contentsOf: Data(bytes))
        }

        private func contains(_ text: String, below place: String) -> Bool {
            (FileManager.default.enumerator(atPath: place)?.compactMap { $0 as? String } ?? []).contains { name in
                FileManager.default.contents(atPath: "\(place)/\(name)") == Data(text.utf8)
            }
        }

        @Test("CHECK-1: a damaged byte of the database's header is repaired, and what was pending is pending still")
        func repairsTheHeader() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                // The schema's format: SQLite calls it "unsupported file format".
                try write([0x20], at: 44, to: replica(yonder).appending("replica.sqlite").string)
                try await yonder.yonder("mount", "mount").expectFailure(saying: "damaged")
                #expect(try await yonder.yonder("check", "mount").status == 1)
                let mended = try await yonder.yonder("check", "mount", "--repair")
                // The domain is paused, so it cannot be compared with its remote.
                #expect(mended.status == 1, "\(mended.output)\(mended.errors)")
                #expect(mended.output.contains("mended: mount: the database is damaged"), "\(mended.output)")
                #expect(mended.errors.contains("paused"), "\(mended.errors)")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["mine"]).output == "precious")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(contains("precious", below: yonder.source.string))
            }
        }

        private func destroy(_ yonder: Installation) throws {
            let database = replica(yonder).appending("replica.sqlite").string
            let size = try FileManager.default.attributesOfItem(atPath: database)[.size] as? Int ?? 0
            try write([UInt8](repeating: 0xA5, count: size), at: 0, to: database)
            try Data("{".utf8).write(to: URL(fileURLWithPath: replica(yonder).appending("domain.json").string))
        }

        @Test(
            "CHECK-6: with database and domain.json damaged the domain can be removed, and what is here alone is kept")
        func removesWhatIsLeft() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                try destroy(yonder)
                for arguments in [["check", "mount"], ["check", "mount", "--repair"], ["mount", "mount"]] {
                    let refused = try await Command(
                        [Installation.program] + arguments, environment: yonder.environment, seconds: 30
                    ).run()
                    #expect(refused.status == 1)
                    #expect(
                        refused.errors.contains("yonder remove mount") && refused.errors.contains("--name mount"),
                        "\(arguments): \(refused.errors)")
                }
                let kept = yonder.directory["kept"].string
                try await yonder.yonder("remove", "mount", "--to", kept).expectSuccess()
                #expect(contains("precious", below: kept))
                try await yonder.mountSource()
                #expect(try await Command.run("cat", yonder["a"]).output == "alpha")
            }
        }

        @Test(
            "CHECK-6: with database and domain.json damaged a mount that names the source again makes a repair possible",
            arguments: [false, true]
        )
        func sayingTheSourceAgainHelps(onTerminal: Bool) async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                try destroy(yonder)
                let words = ["mount", yonder.source.string, yonder.mount.string, "--name", "mount"]
                if onTerminal {
                    let refused = try await yonder.onTerminal(words)
                    #expect(refused.status == 1 && refused.text.contains("check mount --repair"), "\(refused)")
                } else {
                    try await yonder.yonder(words: words).expectFailure(saying: "check mount --repair")
                }
                try await yonder.yonder("check", "mount", "--repair").expectSuccess()
                #expect(contains("precious", below: replica(yonder).appending("recovered").string))
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["b"]).output == "beta")
            }
        }

        @Test("a damaged provider's store is reported by a check, moved to recovered/ by a repair, and made anew")
        func repairsTheProvidersStore() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                let store = replica(yonder).appending("provider.sqlite").string
                try write([UInt8](repeating: 0xA5, count: 100), at: 0, to: store)
                let found = try await yonder.yonder("check", "mount")
                #expect(found.status == 1, "\(found.output)\(found.errors)")
                #expect((found.output + found.errors).contains("the provider's store is damaged"))
                let mended = try await yonder.yonder("check", "mount", "--repair")
                #expect(mended.output.contains("the provider's store was damaged"), "\(mended.output)\(mended.errors)")
                let recovered = try FileManager.default.contentsOfDirectory(
                    atPath: replica(yonder).appending("recovered").string)
                #expect(recovered.count { $0.hasPrefix("provider-") } == 1, "\(recovered)")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(contains("precious", below: yonder.source.string))
                try await yonder.yonder("check", "mount").expectSuccess()
            }
        }

        @Test("CHECK-1: check reports orphaned and missing content files that a mount has put right before it")
        func reportsWhatMountingMended() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                let contents = replica(yonder).appending("contents").string
                for name in try FileManager.default.contentsOfDirectory(atPath: contents)
                where FileManager.default.contents(atPath: "\(contents)/\(name)") == Data("alpha".utf8) {
                    try FileManager.default.removeItem(atPath: "\(contents)/\(name)")
                }
                try Data("orphan".utf8).write(to: URL(fileURLWithPath: contents + "/999"))
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                for _ in 0..<2 {
                    let text = try await yonder.yonder("check", "mount").output
                    #expect(text.contains("contents/999") && text.contains("was not in its place"), "\(text)")
                }
                let mended = try await yonder.yonder("check", "mount", "--repair")
                #expect(mended.status == 0 && mended.output.contains("contents/999"), "\(mended.output)")
                let after = try await yonder.yonder("check", "mount")
                #expect(!after.output.contains("all is well now"), "\(after.output)")
                #expect(after.status == 0 && after.output.contains("all is well"), "\(after.output)")
                #expect(contains("orphan", below: replica(yonder).appending("recovered").string))
                #expect(try await Command.run("cat", yonder["a"]).output == "alpha")
            }
        }

        @Test("CHECK-1: a new file whose content is lost is found again and again, until it is removed")
        func lostContent() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                try await yonder.shell("echo precious > new")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let contents = replica(yonder).appending("contents").string
                for name in try FileManager.default.contentsOfDirectory(atPath: contents)
                where FileManager.default.contents(atPath: "\(contents)/\(name)") == Data("precious\n".utf8) {
                    try FileManager.default.removeItem(atPath: "\(contents)/\(name)")
                }
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                for _ in 0..<2 {
                    let found = try await yonder.yonder("check", "mount", "--repair")
                    #expect(found.status == 1 && found.errors.contains("the remote never had it"), "\(found)")
                }
                #expect(
                    try await yonder.yonder("why", yonder["new"]).output.contains(
                        "is not on this machine's disk any more"))
                try await yonder.shell("rm new")
                // The domain is paused, and the remote is not asked.
                let after = try await yonder.yonder("check", "mount")
                #expect(after.output.contains("nothing is wrong here; "), "\(after)")
            }
        }

        @Test("CHECK-1: check finds and repairs orphaned and missing content files of a mounted domain")
        func findsThemWhileMounted() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let contents = replica(yonder).appending("contents").string
                for name in try FileManager.default.contentsOfDirectory(atPath: contents)
                where FileManager.default.contents(atPath: "\(contents)/\(name)") == Data("alpha".utf8) {
                    try FileManager.default.removeItem(atPath: "\(contents)/\(name)")
                }
                try Data("orphan".utf8).write(to: URL(fileURLWithPath: contents + "/999"))
                let found = try await yonder.yonder("check", "mount")
                #expect(found.status == 1 && found.errors.contains("contents/999"), "\(found.errors)")
                #expect(found.errors.contains("its content is lost"), "\(found.errors)")
                #expect(try await yonder.yonder("check", "mount", "--repair").status == 0)
                let after = try await yonder.yonder("check", "mount").output
                #expect(after.contains("all is well") && !after.contains("all is well now"), "\(after)")
                #expect(try await Command.run("cat", yonder["a"]).output == "alpha")
            }
        }
    }
}
