import FileProviderTesting
import Foundation
import Logging
import ProgramProvider
import ProviderDescriptors
import SystemPackage
import TestSupport
import Testing

@testable import ProgramConformance

@Suite(.tags(.server, .long)) struct ProgramConformanceTests {
    init() { BrokenPipes.areIgnored }

    @Test("a program that speaks the paths level is a whole provider", arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try ServedByProgram() }.run(check)
    }

    @Test("so is one that neither checks conditions nor reads ranges", arguments: ProviderConformance.Check.allCases)
    func plain(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try ServedByProgram(fault: "unconditional,whole") }.run(check)
    }

    @Test("the item store is a whole provider", arguments: ProviderConformance.Check.allCases)
    func items(to check: ProviderConformance.Check) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        try await run(check, "store", "store:\(scratch["store"])")
    }

    @Test("the item store keeps the conditions of single calls", arguments: ItemCheck.allCases)
    func itemCalls(_ check: ItemCheck) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let (factory, settings) = example("store", secrets: [:])
        let program = try await ProgramUnderTest("store:\(scratch["store"])", factory, settings)
        try await withCleanUp({ await program.dispose() }) { try await check.run(try #require(program.store)) }
    }

    @Test("a tag that changes with a rename is named as what is wrong")
    func changingTag() async throws {
        do {
            try await ProviderConformance { try ServedByProgram(fault: "ctime-tags") }.run(.identifiersSurviveRenames)
            Issue.record("a tag with the time of the rename passes")
        } catch { #expect("\(error)".contains("'tag'"), "\(error)") }
    }

    @Test(
        "so is a directory of an FTP server, which can have no name with a line end",
        .enabled(if: FTPServer.python != nil, "pyftpdlib is not installed"),
        arguments: ProviderConformance.Check.allCases.filter { $0 != .namesAreKept })
    func ftp(to check: ProviderConformance.Check) async throws {
        let server = try await FTPServer()
        defer { server.stop() }
        try await run(check, "ftp", server.source, secrets: ["password": "secret word"])
    }

    @Test(
        "the example of FTP keeps the conditions of single calls",
        .enabled(if: FTPServer.python != nil, "pyftpdlib is not installed"), arguments: PathCheck.allCases)
    func ftpCalls(_ check: PathCheck) async throws {
        let server = try await FTPServer()
        defer { server.stop() }
        let (factory, settings) = example("ftp", secrets: ["password": "secret word"])
        let program = try await ProgramUnderTest(server.source, factory, settings)
        try await withCleanUp({ await program.dispose() }) { try await check.run(try #require(program.paths)) }
    }

    @Test("the example of FTP names the form of a source without a host", arguments: ["", "user@127.0.0.1:1/top"])
    func ftpForm(location: String) async throws {
        let (factory, settings) = example("ftp", secrets: [:])
        do {
            _ = try await factory.probe("ftp:\(location)", settings)
            Issue.record("a source without a host is served")
        } catch { #expect("\(error)".contains("ftp://USER@HOST/PATH"), "\(error)") }
    }

    @Test("the example of FTP looks again after an upload, and replaces nothing that was written meanwhile")
    func ftpLooksAgain() async throws {
        let program = """
            import io, sys
            sys.stdin = io.StringIO()
            names = {"__name__": "example"}
            exec(open(sys.argv[1]).read(), names)
            calls = []
            class Connection:
                base, sock = "", True
                def storbinary(self, *rest, **more): calls.append("store")
                def rename(self, *rest): calls.append("rename")
                def delete(self, name): calls.append("delete " + name[:17])
            # Written between the daemon's look and the end of the upload.
            names["stat"] = lambda ftp, path: {"name": path, "kind": "file", "tag": "theirs"}
            names["date"] = lambda *rest: None
            for condition in [{"ifAbsent": True}, {"ifTag": "mine"}, {"ifTag": "theirs"}]:
                try:
                    names["write"](Connection(), "file", {"from": "/dev/null", "call": 1, **condition})
                except names["Failure"] as failure:
                    calls.append(failure.data["code"])
            print(calls)
            """
        let outcome = try await Command.python(program, examples.appending("yonder-provider-ftp").string)
        #expect(
            outcome.output == """
                ['store', 'delete /.yonder-partial-', 'filenameCollision', 'store', 'delete /.yonder-partial-', \
                'localVersionConflictingWithServer', 'store', 'rename']

                """, "\(outcome.errors)")
    }

    /// Runs a check against a program of `Examples/Programs`.
    private func run(
        _ check: ProviderConformance.Check, _ name: String, _ source: String, secrets: [String: String] = [:]
    ) async throws {
        let (factory, settings) = example(name, secrets: secrets)
        try await ProviderConformance { try await ProgramUnderTest(source, factory, settings) }.run(check)
    }

    private let examples = FilePath(#filePath).removingLastComponent().appending("../../Examples/Programs")

    private func example(_ name: String, secrets: [String: String]) -> (ProgramProviderFactory, ProviderSettings) {
        (
            ProgramProviderFactory(program: examples.appending("yonder-provider-\(name)").string),
            ProviderSettings(
                options: [:], secrets: { secrets }, environment: { ProcessInfo.processInfo.environment },
                logger: Logger(label: "test"))
        )
    }
}
