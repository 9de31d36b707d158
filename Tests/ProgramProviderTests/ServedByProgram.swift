import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import ProviderDescriptors
import SystemPackage
import TestSupport

@testable import ProgramProvider

/// A folder that a Python program serves.
struct ServedByProgram: RemoteUnderTest, TestFolder {
    let scratch: TemporaryDirectory
    let root: FilePath
    let settings: ProviderSettings
    let factory: ProgramProviderFactory

    /// - Parameter fault: what the program does wrong, see `folder.py`.
    init(fault: String? = nil, inactivityLimit: Duration = .seconds(30)) throws {
        scratch = try TemporaryDirectory()
        root = try scratch.makeDirectory("root")
        _ = try scratch.makeDirectory("state")
        let programs = try scratch.makeDirectory("config/yonder/providers")
        let program = Self.programs.appending("folder.py").string
        let script = "#!/bin/sh\nexec python3 '\(program)'\n"
        let path = programs.appending("yonder-provider-folder").string
        try script.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        var environment = ProcessInfo.processInfo.environment
        environment["XDG_CONFIG_HOME"] = scratch["config"].string
        settings = ProviderSettings(
            options: fault.map { ["fault": $0] } ?? [:], secrets: { ["token": "secret word"] },
            environment: { [environment] in environment }, logger: Logger(label: "test"))
        factory = ProgramProviderFactory(inactivityLimit: inactivityLimit)
    }

    static var programs: FilePath { FilePath(#filePath).removingLastComponent().appending("Programs") }

    var domain: FileProviderDomain { FileProviderDomain(identifier: "test", source: "folder:\(root)") }
    var stateDirectory: FilePath { scratch["state"] }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        let findings = try await factory.probe(domain.source, settings)
        return try factory.make(for: manager, settings, findings: findings)
    }

    /// The remote itself, without what gives its items identifiers.
    func remote() async throws -> any PathRemote {
        let manager = TestManager(domain: domain, stateDirectory: stateDirectory)
        let provider = try await makeProvider(for: manager)
        guard let provider = provider as? PathAddressedProvider else { throw FileProviderError(.featureUnsupported) }
        return provider.remote
    }

    subscript(_ path: String) -> String { root.appending(path).string }

    func dispose() async { scratch.remove() }
}
