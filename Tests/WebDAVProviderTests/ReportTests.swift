import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@Suite("WebDAV servers that report what has changed", .tags(.server), .serialized)
struct ReportTests {
    @Test("DAV-1: conforms on xandikos", .enabled(if: DAVServer.Kind.xandikos.program != nil))
    func conformsOnXandikos() async throws {
        let server = try await DAVServer.start(.xandikos)
        for check in ProviderConformance.Check.allCases {
            do {
                try await ProviderConformance { try await RequestedFolder(server) }.run(check)
                #expect(check != .namesAreKept)
            } catch {
                // It takes no control characters.
                if check == .namesAreKept { continue }
                Issue.record("\(check): \(error)")
            }
        }
        await server.stop()
    }

    @Test("DAV-1: conforms on sabre/dav with reports", .enabled(if: DAVServer.Kind.reporting.program != nil))
    func conformsOnSabre() async throws {
        let server = try await DAVServer.start(.reporting)
        // All of them are asked of sabre/dav without reports.
        for check: ProviderConformance.Check in [
            .identifiersSurviveRenames, .newItemsAreStored, .itemsAreRenamedAndMoved, .staleDeletionsAreRejected,
        ] {
            do {
                try await ProviderConformance { try ServedFolder(server) }.run(check)
            } catch {
                Issue.record("\(check): \(error)")
            }
        }
        await server.stop()
    }

    private func reporter(_ session: ProviderSession) throws -> any ChangeReporter {
        try #require(session.provider as? any ChangeReporter)
    }

    @Test(
        "DAV-25: the directories are named in which something came, went or changed, at any depth",
        .enabled(if: DAVServer.Kind.reporting.program != nil))
    func wholeTrees() async throws {
        try await ServedFolder.run(on: .reporting) { folder, session async throws in
            for name in ["a", "a/b", "a/b/c", "d"] { try await folder.makeDirectory(name) }
            try await folder.write([1], to: "a/b/file")
            let a = try await session.find("a").itemIdentifier
            let b = try await session.find("a/b").itemIdentifier
            let c = try await session.find("a/b/c").itemIdentifier
            let d = try await session.find("d").itemIdentifier
            try await session.list(c)
            try await session.list(d)
            let all = [ItemIdentifier.rootContainer, a, b, c, d]
            let reporter = try reporter(session)
            #expect(try await reporter.changeReports() == .ofAll)
            let first = try await reporter.changes(since: nil, among: all)
            #expect(first.changed == nil)
            let mark = try #require(first.mark)
            #expect(try await reporter.changes(since: mark, among: all).changed == [])

            try await folder.write([1, 2], to: "a/b/file")
            let second = try await reporter.changes(since: mark, among: all)
            #expect(second.changed == [b])
            // More than the server tells at once, and what went.
            for number in 0..<10 { try await folder.write([1], to: "d/file \(number)") }
            try await folder.rename("a/b/file", to: "a/file")
            let third = try await reporter.changes(since: second.mark, among: all)
            #expect(third.changed == [a, b, d])
            #expect(folder.server.requests.count { $0.hasPrefix("REPORT") } > 5)
            // A directory that goes takes what is in it with it.
            try await folder.rename("a/b", to: "moved")
            let fourth = try #require(try await reporter.changes(since: third.mark, among: all).changed)
            #expect(fourth.isSuperset(of: [.rootContainer, a, b, c]) && !fourth.contains(d))

            // It is good for another instance, and for nothing else.
            let again = try folder.makePathProvider(for: session.manager)
            #expect(try await again.changes(since: third.mark, among: all).changed == fourth)
            await again.invalidate()
            #expect(try await reporter.changes(since: third.mark, in: d).changed == nil)
            #expect(try await reporter.changes(since: Array("made up".utf8), among: all).changed == nil)
        }
    }

    @Test(
        "DAV-26: a mark that is refused is none, and a report that is cut short says nothing",
        .enabled(if: DAVServer.Kind.reporting.program != nil))
    func refusals() async throws {
        try await ServedFolder.run(on: .reporting) { folder, session async throws in
            try await folder.write([1], to: "file")
            try await session.list()
            let reporter = try reporter(session)
            #expect(try await reporter.changeReports() == .ofAll)
            let mark = try #require(try await reporter.changes(since: nil, among: [.rootContainer]).mark)
            try await folder.delete("file")
            _ = try folder.server.directory.makeFile("cut", "".utf8)
            await #expect(throws: FileProviderError.self) {
                _ = try await reporter.changes(since: mark, among: [.rootContainer])
            }
            try FileManager.default.removeItem(atPath: folder.server.directory["cut"].string)
            #expect(try await reporter.changes(since: mark, among: [.rootContainer]).changed == [.rootContainer])
            _ = try folder.server.directory.makeFile("forgotten", "".utf8)
            let anew = try await reporter.changes(since: mark, among: [.rootContainer])
            #expect(anew.changed == nil)
            #expect(try await reporter.changes(since: anew.mark, among: [.rootContainer]).changed == [])
        }
    }

    @Test(
        "DAV-27: one directory is asked about where no more is reported, and what is left out is found out",
        .enabled(if: DAVServer.Kind.reportingMembers.program != nil))
    func members() async throws {
        try await ServedFolder.run(on: .reportingMembers) { folder, session async throws in
            try await folder.makeDirectory("a")
            try await folder.write([1], to: "a/file")
            let a = try await session.find("a").itemIdentifier
            let reporter = try reporter(session)
            #expect(try await reporter.changeReports() == .ofDirectories(areComplete: false))
            let mark = try #require(try await reporter.changes(since: nil, in: a).mark)
            #expect(try await reporter.changes(since: mark, in: a).changed == [])
            try await folder.makeDirectory("a/new")
            #expect(try await reporter.changes(since: mark, in: a).changed == [a])
            #expect(session.provider.remarks.contains { $0.contains("not known to tell") })
            // The first write probes it.
            _ = try await session.create(ProviderSession.template("mine"), content: [1])
            #expect(try await reporter.changeReports() == .ofDirectories(areComplete: true))
        }
    }

    @Test(
        "DAV-27: xandikos tells of files in a directory, and of directories in it nothing",
        .enabled(if: DAVServer.Kind.xandikos.program != nil))
    func xandikos() async throws {
        let server = try await DAVServer.start(.xandikos)
        try await withCleanUp({ await server.stop() }) {
            let folder = try await RequestedFolder(server)
            try await folder.makeDirectory("a")
            try await folder.write([1], to: "a/file")
            let session = try await folder.session()
            let reporter = try reporter(session)
            let a = try await session.find("a").itemIdentifier
            try await session.list(a)
            _ = try await session.create(ProviderSession.template("mine"), content: [1])
            #expect(try await reporter.changeReports() == .ofDirectories(areComplete: false))
            let mark = try #require(try await reporter.changes(since: nil, in: a).mark)
            #expect(try await reporter.changes(since: mark, in: a).changed == [])
            try await folder.write([1, 2], to: "a/file")
            let changed = try await reporter.changes(since: mark, in: a)
            #expect(changed.changed == [a])
            try await folder.delete("a/file")
            #expect(try await reporter.changes(since: changed.mark, in: a).changed == [a])
            // One that it never gave it refuses.
            let foreign = mark.map { $0 == UInt8(ascii: "a") ? UInt8(ascii: "b") : $0 }
            #expect(try await reporter.changes(since: foreign, in: a).changed == nil)
            await session.provider.invalidate()
        }
    }
}
