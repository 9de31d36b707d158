import FileProvider
import FileProviderTesting
import Foundation
import Logging
import ProviderDescriptors
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// The level of a domain.
@Suite(.tags(.server)) struct ProgramLevelTests {
    init() { BrokenPipes.areIgnored }

    private let settings = ProviderSettings(
        options: [:], secrets: { [:] }, environment: { ProcessInfo.processInfo.environment },
        logger: Logger(label: "test"))

    private func factory(_ program: String) -> ProgramProviderFactory {
        let examples = FilePath(#filePath).removingLastComponent().appending("../../Examples/Programs")
        return ProgramProviderFactory(program: examples.appending("yonder-provider-\(program)").string)
    }

    private func manager(in scratch: TemporaryDirectory) throws -> TestManager {
        TestManager(
            domain: FileProviderDomain(identifier: "test", source: "store:\(scratch["store"])"),
            stateDirectory: try scratch.makeDirectory("state"))
    }

    private func root(of provider: any FileProviderReplicatedExtension) async -> (any Error)? {
        do {
            _ = try await provider.item(for: .rootContainer, request: FileProviderRequest(reason: .lookup))
            return nil
        } catch { return error }
    }

    @Test("PROGRAM-5: a domain keeps its level, and a program that serves another one is refused with the reason")
    func keepsLevel() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let manager = try manager(in: scratch)
        let found = try await factory("store").probe(manager.domain.source, settings)
        for findings in [found, nil] {
            let provider = try factory("store").make(for: manager, settings, findings: findings)
            #expect(provider.features.changeFeed && provider.features.trash)
            let failure = await root(of: provider)
            #expect(failure == nil, "\(String(describing: failure))")
            await provider.invalidate()
        }
        let other = try factory("git").make(for: manager, settings, findings: nil)
        let failure = await root(of: other)
        #expect("\(String(describing: failure))".contains("with 'paths', and this domain needs version 1 with 'items'"))
        await other.invalidate()
        #expect(throws: FileProviderError.self) {
            let paths = InitializeResult(version: 1, level: "paths", features: nil)
            _ = try factory("git").make(for: manager, settings, findings: paths)
        }
    }

    @Test("PROGRAM-5: a domain that has lost its level learns it at the next start") func learnsLevel() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let manager = try manager(in: scratch)
        let first = try factory("store").make(for: manager, settings, findings: nil)
        let failure = await root(of: first)
        #expect("\(String(describing: failure))".contains("unmount the domain and mount it again"))
        await first.invalidate()
        let second = try factory("store").make(for: manager, settings, findings: nil)
        let unexpected = await root(of: second)
        #expect(unexpected == nil && second.features.changeFeed, "\(String(describing: unexpected))")
        await second.invalidate()
    }
}

/// The interpreter that has jsonschema.
private let validator: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return folders.first { FileManager.default.isExecutableFile(atPath: $0 + "/jsonschema") }.map { $0 + "/python3" }
}()

/// Docs/Protocol.schema.json.
@Suite(
    .tags(.server), .enabled(if: validator != nil, "the Python package jsonschema is not installed"))
struct ProtocolSchemaTests {
    private static let documents = FilePath(#filePath).removingLastComponent().appending("../../Docs")

    /// What is wrong with messages, and their number.
    private func validate(_ messages: FilePath) async throws -> [Substring] {
        let result = try await Command.run(
            validator ?? "", ServedByProgram.programs.appending("validate.py").string,
            Self.documents.appending("Protocol.schema.json").string, messages.string)
        #expect(result.status == 0, "\(result.errors)")
        return result.output.split(separator: "\n")
    }

    @Test("the schema accepts the examples of the specification, and no message that is not as they are")
    func examples()
        async throws
    {
        let document = Self.documents.appending("Protocol.md")
        #expect(try await validate(document) == ["76"])
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let text = try String(contentsOfFile: document.string, encoding: .utf8)
        for (right, wrong) in [
            ("\"limit\":2", "\"limits\":2"), ("\"kind\":\"symlink\"", "\"kind\":\"link\""),
            ("\"documentSize\":5", "\"documentSize\":-5"), ("\"width\":256", "\"width\":0"),
            ("\"result\":{\"size\":5}", "\"result\":{\"size\":4194305}"),
            ("\"sent\":2", "\"sent\":-2"),
            ("\"code\":\"noSuchItem\"", "\"code\":\"missing\""), ("\"anchor\":\"4\"", "\"anchor\":4"),
        ] {
            let changed = try scratch.makeFile("wrong", Array(text.replacing(right, with: wrong).utf8))
            #expect(try await validate(changed).count > 1, "\(wrong) is accepted")
            try FileManager.default.removeItem(atPath: changed.string)
        }
    }

    @Test("the schema accepts what the daemon and the examples send", arguments: ["folder", "store"])
    func traffic(_ level: String) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        _ = try scratch.makeDirectory("root")
        _ = try scratch.makeDirectory("state")
        let programs = ServedByProgram.programs
        let environment = ProcessInfo.processInfo.environment.merging([
            "RECORD": scratch["record"].string,
            "RECORDED": level == "folder"
                ? programs.appending("folder.py").string
                : programs.appending("../../../Examples/Programs/yonder-provider-store").string,
        ]) { $1 }
        let settings = ProviderSettings(
            options: [:], secrets: { ["token": "secret word"] }, environment: { environment },
            logger: Logger(label: "test"))
        let factory = ProgramProviderFactory(program: programs.appending("record.py").string)
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "\(level):\(scratch["root"])"),
            stateDirectory: scratch["state"])
        let found = try await factory.probe(manager.domain.source, settings)
        let provider = try factory.make(for: manager, settings, findings: found)
        try await use(ProviderSession(provider: provider, manager: manager))
        await provider.invalidate()
        let lines = try await validate(scratch["record"])
        #expect(lines.count == 1 && Int(lines[0]) ?? 0 > 20, "\(lines.joined(separator: "\n"))")
    }

    private func use(_ session: ProviderSession) async throws {
        let directory = try await session.create(ProviderSession.template("directory", kind: .directory)).item
        var template = ProviderSession.template("file", in: directory.itemIdentifier)
        template.permissions = 0o600
        template.contentModificationDate = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5000)
        var file = try await session.create(
            template, content: [1, 2, 3], fields: [.permissions, .contentModificationDate]
        ).item
        file = try await session.modify(file, .contents, content: [4, 5]).item
        file.filename = "other name"
        file = try await session.modify(file, .filename).item
        file.permissions = 0o644
        file = try await session.modify(file, .permissions).item
        _ = try await session.createLink("link", to: "directory")
        _ = try await session.find("directory/other name")
        let sink = CollectingSink()
        _ = try await session.provider.fetchContents(
            for: file.itemIdentifier, version: nil, range: 0..<1, request: session.request, into: sink)
        #expect(sink.isConfirmed)
        _ = try? await session.create(ProviderSession.template("directory", kind: .directory))
        _ = try? await session.item("there-is-no-such-item")
        _ = try await session.provider.quota()
        #expect(session.provider.features.thumbnails)
        try await session.provider.fetchThumbnails(
            for: [file.itemIdentifier, "there-is-no-such-item"], requestedSize: ThumbnailSize(width: 256, height: 256),
            request: session.request, perThumbnailCompletionHandler: { _, _ in })
        if session.provider.features.changeFeed { _ = try await session.changes(from: session.anchor()) }
        try await session.delete(file)
        try await session.delete(directory, recursively: true)
    }
}
