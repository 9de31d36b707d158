import FileProvider
import FileProviderTesting
import InMemoryLogging
import Logging
import Replica
import TestSupport
import Testing

@testable import Sync

@Suite struct WarningsTests {
    @Test("a warning goes when its cause succeeds, and is logged once") func causes() {
        let log = InMemoryLogHandler()
        let warnings = Warnings(logger: Logger(label: "test") { _ in log })
        warnings.report("stays")
        for _ in 0..<2 {
            warnings.report("fails", of: .reimport)
            warnings.report("fails", of: .reimport)
            warnings.report("is odd", of: .listing(.root))
            #expect(warnings.texts == ["stays", "fails (2 times)", "is odd"])
            warnings.succeeded(.sending)
            #expect(warnings.texts.count == 3)
            warnings.succeeded(.listing(.root))
            warnings.succeeded(.reimport)
            #expect(warnings.texts == ["stays"])
        }
        for number: Int64 in [1, 2] { warnings.report("both", of: .content(InodeNumber(rawValue: number))) }
        warnings.succeeded(.content(InodeNumber(rawValue: 1)))
        #expect(warnings.texts == ["stays", "both (2 times)"])
        warnings.succeeded(.content(InodeNumber(rawValue: 2)))
        warnings.withdraw("stays")
        #expect(warnings.texts == [])
        #expect(log.entries.map { "\($0.message)" } == ["stays", "fails", "is odd", "both"])
    }

    @Test("NAME-6: a warning with a very long name in it is cut, and goes as others do") func longTexts() {
        let log = InMemoryLogHandler()
        let warnings = Warnings(logger: Logger(label: "test") { _ in log })
        let long = String(repeating: "ä", count: 1 << 20)
        warnings.report(long, of: .reimport)
        warnings.report(all: [long], of: .omissions(.root))
        #expect(warnings.texts.count == 1 && warnings.texts.allSatisfy { $0.utf8.count < 3000 })
        warnings.succeeded(.reimport)
        #expect(warnings.texts.count == 1)
        warnings.report(all: [], of: .omissions(.root))
        #expect(warnings.texts == [])
        warnings.report(long)
        #expect(warnings.texts.count == 1)
        warnings.withdraw(long)
        #expect(warnings.texts == [])
        #expect(log.entries.count == 1 && log.entries.allSatisfy { "\($0.message)".utf8.count < 3000 })
    }

    @Test("NAME-6: what a directory leaves out is said as the last listing has it, and logged once") func omissions() {
        let log = InMemoryLogHandler()
        let warnings = Warnings(logger: Logger(label: "test") { _ in log })
        let (one, other) = (InodeNumber(rawValue: 1), InodeNumber(rawValue: 2))
        warnings.report("stays")
        for _ in 0..<2 {
            warnings.report(all: ["a", "b", "b"], of: .omissions(one))
            #expect(warnings.texts == ["stays", "a", "b (2 times)"])
        }
        warnings.report(all: ["b", "c"], of: .omissions(one))
        warnings.report(all: ["c", "stays"], of: .omissions(other))
        #expect(warnings.texts == ["stays (2 times)", "b", "c (2 times)"])
        warnings.report(all: [], of: .omissions(one))
        #expect(warnings.texts == ["stays (2 times)", "c (2 times)"])
        warnings.report(all: [], of: .omissions(other))
        #expect(warnings.texts == ["stays (2 times)"])
        #expect(log.entries.map { "\($0.message)" } == ["stays", "a", "b", "c"])
        // They take the place of no other warning.
        for number in 1..<Warnings.limit { warnings.report("\(number)") }
        warnings.report(all: ["new"], of: .omissions(one))
        #expect(warnings.texts.count == Warnings.limit)
        #expect(warnings.texts.first == "stays (2 times)")
    }
}

/// Warnings that outlive the process.
@Suite struct LastingWarningTests {
    @Test("NAME-6, NAME-7, CONFLICT-8: what is so until something changes is given again, and goes as before")
    func kinds() {
        let warnings = Warnings(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let one = InodeNumber(rawValue: 1)
        let causes: [Warnings.Cause] = [.conflict(one), .decoratedName("x"), .deletion(of: "x", in: "d")]
        warnings.report("stays")
        warnings.report("fails", of: .sending)
        warnings.report(all: ["a", "a"], of: .omissions(one))
        for (number, cause) in causes.enumerated() { warnings.report("\(number)", of: cause) }
        warnings.report("2", of: .listing(one))
        let log = InMemoryLogHandler()
        let next = Warnings(logger: Logger(label: "test") { _ in log })
        next.restore(warnings.lasting)
        #expect(next.texts == ["a (2 times)", "0", "1", "2 (2 times)"])
        #expect(next.causes == Set(causes + [.omissions(one)]) && next.lasting == warnings.lasting)
        next.report(all: ["a", "a"], of: .omissions(one))
        #expect(next.texts.first == "a (2 times)" && log.entries.isEmpty)
        next.report(all: [], of: .omissions(one))
        for cause in causes { next.succeeded(cause) }
        #expect(next.texts == [] && next.lasting == [])
    }
}

extension EngineTests {
    /// Warnings that outlive the process, of a domain.
    @Suite struct LastingDomainWarningTests {
        private func fill(_ tree: inout RemoteTree) {
            for identifier in ["1", "2"] {
                tree.addFile("same", content: RemoteContent(identifier), identifier: ItemIdentifier(identifier))
            }
            tree.addFile("x", content: RemoteContent("first"), identifier: "x")
        }

        @Test("NAME-7, CONFLICT-8: the warnings are there after a restart, until what they are about is over")
        func restart() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.remove("x")
                machine.provider.changeSilently { $0.write(RemoteContent("there"), to: "x") }
                try await machine.send()
                let texts = try machine.engine.currentWarnings()
                #expect(texts.contains { $0.hasPrefix("two items are called 'same'") }, "\(texts)")
                #expect(texts.contains { $0.hasPrefix("'x' was removed here and stays") }, "\(texts)")
                machine.engine.warningStore.store()
                let next = try machine.crash()
                try await withCleanUp({ await next.stop() }) {
                    #expect(try next.engine.currentWarnings() == texts)
                    next.provider.change { tree in
                        for identifier in ["1", "2", "x"] as [ItemIdentifier] { tree.delete(identifier) }
                    }
                    try await next.drain()
                    #expect(try next.engine.currentWarnings() == [])
                    next.engine.warningStore.store()
                    #expect(try next.replica.database.value(of: .warnings, as: [Warnings.Lasting].self) == [])
                }
            }
        }

        @Test("NAME-7: a warning is stored while the process runs") func isStored() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                let lasting = machine.engine.warnings.lasting
                #expect(lasting.count == 1)
                let database = machine.replica.database
                let isStored = try await eventually {
                    try database.value(of: .warnings, as: [Warnings.Lasting].self) == lasting
                }
                #expect(isStored)
            }
        }
    }

    /// Warnings of uploads, downloads and evictions that callers have asked for.
    @Suite struct RequestWarningTests {
        private func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("f", in: "d", content: RemoteContent("text"), identifier: "f")
        }

        @Test("ERROR-6: the warning about an upload ends when all is on the remote, without another request")
        func upload() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.write("new", to: "d/n")
                for path in ["d", "d/n", "d/f"] {
                    machine.engine.warnings.report("upload of \(path)", of: .upload(try await machine.number(path)))
                }
                #expect(try machine.engine.currentWarnings() == ["upload of d", "upload of d/n"])
                try await machine.send()
                #expect(try machine.engine.currentWarnings() == [])
            }
        }

        @Test("ERROR-6: a warning about a download ends when the content is here, and about an eviction when it is not")
        func downloadAndEviction() async throws {
            try await Machine.run(fill: fill) { machine in
                let file = try await machine.number("d/f")
                for path in ["d", "d/f"] {
                    machine.engine.warnings.report(
                        "download of \(path)", of: .download(try await machine.number(path)))
                }
                #expect(try machine.engine.currentWarnings() == ["download of d", "download of d/f"])
                try await machine.engine.materialize(file, request: machine.request)
                #expect(try machine.engine.currentWarnings() == [])
                machine.engine.warnings.report("eviction", of: .eviction(file))
                #expect(try machine.engine.currentWarnings() == ["eviction"])
                #expect(try await machine.engine.evict(file, isStrict: true).refusals.isEmpty)
                #expect(try machine.engine.currentWarnings() == [])
            }
        }

        @Test("ERROR-6: a warning about an item ends when the item is removed") func removal() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.write("new", to: "d/n")
                let (new, file) = (try await machine.number("d/n"), try await machine.number("d/f"))
                machine.engine.warnings.report("upload", of: .upload(new))
                machine.engine.warnings.report("eviction", of: .eviction(new))
                machine.engine.warnings.report("download", of: .download(file))
                #expect(try machine.engine.currentWarnings().count == 3)
                for path in ["d/n", "d/f"] { try await machine.remove(path) }
                #expect(try machine.engine.currentWarnings() == [])
            }
        }
    }
}
