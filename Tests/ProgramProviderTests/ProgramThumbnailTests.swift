import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import ProviderDescriptors
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// Thumbnails that programs make.
@Suite(.tags(.server)) struct ProgramThumbnailTests {
    init() { BrokenPipes.areIgnored }

    private static let size = ThumbnailSize(width: 256, height: 128)
    private static let picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 1, 2, 3]

    /// What is reported of files.
    private struct Found: Hashable, Sendable {
        var images: [ItemIdentifier: [UInt8]?] = [:]
        var failures: [ItemIdentifier: FileProviderError.Code] = [:]
    }

    private func thumbnails(_ session: ProviderSession, of identifiers: [ItemIdentifier]) async throws -> Found {
        let found = Mutex(Found())
        try await session.provider.fetchThumbnails(
            for: identifiers, requestedSize: Self.size, request: FileProviderRequest(reason: .lookAhead)
        ) { identifier, result in
            found.withLock { found in
                switch result {
                case .success(let image): found.images[identifier] = .some(image)
                case .failure(let error): found.failures[identifier] = (error as? FileProviderError)?.code
                }
            }
        }
        return found.withLock { $0 }
    }

    /// Calls a closure with the provider of a program that serves an empty remote.
    private func run(
        _ program: FilePath, _ fault: String = "", _ body: (ProviderSession) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let root = try scratch.makeDirectory("root")
        let source = "test:\(root)"
        let settings = ProviderSettings(
            options: ["fault": fault], secrets: { [:] }, environment: { ProcessInfo.processInfo.environment },
            logger: Logger(label: "test"))
        let factory = ProgramProviderFactory(program: program.string)
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: source),
            stateDirectory: try scratch.makeDirectory("state"))
        let findings = try await factory.probe(source, settings)
        let provider = try factory.make(for: manager, settings, findings: findings)
        try await withCleanUp({ await provider.invalidate() }) {
            try await body(ProviderSession(provider: provider, manager: manager))
            #expect(try leftovers(in: manager.stateDirectory) == [])
        }
    }

    private func leftovers(in state: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: state.appending("transfer").string)
    }

    @Test("PROGRAM-9: on the level paths each file has its thumbnail, none, or an error of its own") func paths()
        async throws
    {
        try await run(ServedByProgram.programs.appending("folder.py")) { session in
            #expect(session.provider.features.thumbnails)
            var pictures: [ItemIdentifier] = []
            for number in UInt8(0)..<20 {
                let template = ProviderSession.template("\(number).png")
                pictures.append(
                    try await session.create(template, content: Self.picture + [number]).item.itemIdentifier)
            }
            func file(_ name: String, _ content: [UInt8]) async throws -> ItemIdentifier {
                try await session.create(ProviderSession.template(name), content: content).item.itemIdentifier
            }
            let text = try await file("text", Array("text".utf8))
            let forbidden = try await file("forbidden.png", Self.picture)
            let found = try await thumbnails(session, of: [forbidden, text, "no such item"] + pictures)
            var expected = Found(
                images: [text: nil], failures: [forbidden: .fileReadNoPermission, "no such item": .noSuchItem])
            for (number, picture) in pictures.enumerated() {
                expected.images[picture] = Self.picture + [UInt8(number)]
            }
            #expect(found == expected)
        }
    }

    @Test("PROGRAM-9: so on the level items, where the item store has the pictures that are in documents") func items()
        async throws
    {
        let store = FilePath(#filePath).removingLastComponent().appending(
            "../../Examples/Programs/yonder-provider-store")
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        try await Command.python(
            """
            import sys, zipfile
            for path, length in ((sys.argv[1], 7), (sys.argv[2], (4 << 20) + 1)):
                with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as document:
                    document.writestr("content.xml", "<text/>")
                    document.writestr("Thumbnails/thumbnail.png", b"\\x89PNG\\1\\2\\3".ljust(length, b" "))
            """, scratch["a.odt"].string, scratch["large.odt"].string
        ).expectSuccess()
        try await run(store) { session in
            func file(_ name: String, _ content: [UInt8]) async throws -> ItemIdentifier {
                try await session.create(ProviderSession.template(name), content: content).item.itemIdentifier
            }
            func document(_ name: String) async throws -> ItemIdentifier {
                try await file(name, Array(try Data(contentsOf: URL(fileURLWithPath: scratch[name].string))))
            }
            let (small, large) = (try await document("a.odt"), try await document("large.odt"))
            let text = try await file("text", Array("PK, and no document".utf8))
            let found = try await thumbnails(session, of: [small, large, text, "4711", "unknown"])
            #expect(
                found
                    == Found(
                        images: [small: Self.picture, large: nil, text: nil],
                        failures: ["4711": .noSuchItem, "unknown": .noSuchItem]))
        }
    }

    @Test(
        "PROGRAM-9: a program that has not announced thumbnails is not asked for them",
        arguments: ["folder.py", "faulty-store.py"])
    func notAnnounced(program: String) async throws {
        try await run(ServedByProgram.programs.appending(program), "no-thumbnails") { session in
            #expect(!session.provider.features.thumbnails)
            let file = try await session.create(ProviderSession.template("a.png"), content: Self.picture).item
            let code = await failureCode { _ = try await thumbnails(session, of: [file.itemIdentifier]) }
            #expect(code == .featureUnsupported)
        }
    }

    /// Has a program with a fault make the thumbnail of a picture. Afterwards that of a text is none, and no file is left.
    private func failure(
        _ fault: String, inactivityLimit: Duration = .seconds(30)
    ) async throws -> FileProviderError? {
        let served = try ServedByProgram(fault: fault, inactivityLimit: inactivityLimit)
        let remote = try await served.remote()
        var error: FileProviderError?
        try await withCleanUp({
            await remote.close()
            await served.dispose()
        }) {
            let remote = try #require(remote as? any ThumbnailRemote)
            try await served.write(Self.picture, to: "picture.png")
            try await served.write(Array("text".utf8), to: "text")
            error = await TestSupport.failure {
                _ = try await remote.thumbnail(of: RemotePath(["picture.png"]), size: Self.size)
            }
            #expect(try leftovers(in: served.stateDirectory) == [])
            #expect(try await remote.thumbnail(of: RemotePath(["text"]), size: Self.size) == nil)
            #expect(try leftovers(in: served.stateDirectory) == [])
        }
        return error
    }

    @Test(
        "PROGRAM-9: a thumbnail that the program has not written into the file that it got is an error of that thumbnail",
        arguments: [
            ("names-another-file", "with 0 bytes, and answers with 7"),
            ("links-elsewhere", "with 0 bytes, and answers with 7"),
            ("replaces-file", "with 0 bytes, and answers with 7"),
            ("cuts-thumbnails", "with 6 bytes, and answers with 7"),
            ("tells-no-size", "with 7 bytes, and answers with 0"),
            ("tells-negative", "with 7 bytes, and answers with -7"),
            ("tells-text", "a response to 'thumbnail' that is not as the protocol has it"),
            ("large-thumbnails", "with 4194305 bytes, and may write at most 4194304"),
        ])
    func wrong(fault: String, words: String) async throws {
        let error = try await failure(fault)
        #expect(
            error?.code == .malformedResponse && error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test("PROGRAM-9: a thumbnail that is not wanted any more is given up, and leaves no file") func cancelled()
        async throws
    {
        let served = try ServedByProgram(fault: "hangs-at-thumbnails")
        let remote = try await served.remote()
        try await withCleanUp({
            await remote.close()
            await served.dispose()
        }) {
            let remote = try #require(remote as? any ThumbnailRemote)
            try await served.write(Self.picture, to: "picture.png")
            let call = Task { try await remote.thumbnail(of: RemotePath(["picture.png"]), size: Self.size) }
            #expect(try await eventually { try !leftovers(in: served.stateDirectory).isEmpty })
            call.cancel()
            let code = await failureCode { _ = try await call.value }
            #expect(code == .userCancelled)
            #expect(try leftovers(in: served.stateDirectory) == [])
        }
    }

    @Test("PROGRAM-9: a thumbnail that never comes ends the program at the inactivity limit") func missing()
        async throws
    {
        let error = try await failure("hangs-at-thumbnails", inactivityLimit: .seconds(4))
        #expect(error?.code == .timedOut, "\(String(describing: error))")
    }
}
