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
        do {
            try await check.run(try #require(program.paths))
        } catch {
            await program.dispose()
            throw error
        }
        await program.dispose()
    }

    /// Runs a check against a program of `Examples/Programs`.
    private func run(
        _ check: ProviderConformance.Check, _ name: String, _ source: String, secrets: [String: String] = [:]
    ) async throws {
        let (factory, settings) = example(name, secrets: secrets)
        try await ProviderConformance { try await ProgramUnderTest(source, factory, settings) }.run(check)
    }

    private func example(_ name: String, secrets: [String: String]) -> (ProgramProviderFactory, ProviderSettings) {
        let examples = FilePath(#filePath).removingLastComponent().appending("../../Examples/Programs")
        return (
            ProgramProviderFactory(program: examples.appending("yonder-provider-\(name)").string),
            ProviderSettings(
                options: [:], secrets: { secrets }, environment: { ProcessInfo.processInfo.environment },
                logger: Logger(label: "test"))
        )
    }
}
