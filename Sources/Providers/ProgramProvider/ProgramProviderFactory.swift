import FileProvider
import FileProviderPaths
import Foundation
import ProviderDescriptors
import Synchronization
import SystemPackage

/// Makes the providers of `NAME:ANYTHING` sources, which programs serve.
package struct ProgramProviderFactory: ProviderFactory {
    private let program: String?
    private let inactivityLimit: Duration
    private let isDaemon: Bool

    /// - Parameters:
    ///   - program: the path of the executable; nil to search it by the name in the source.
    ///   - inactivityLimit: the time without progress after which a program has hung.
    ///   - isDaemon: whether this process is the daemon: else what programs report is on its standard error.
    package init(program: String? = nil, inactivityLimit: Duration = .seconds(60), isDaemon: Bool = true) {
        self.program = program
        self.isDaemon = isDaemon
        self.inactivityLimit = inactivityLimit
    }

    package var descriptor: ProviderDescriptor { .program }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        let records = ReportingStore(of: manager)
        let kept = Self.start(in: records)
        let found = findings as? InitializeResult ?? kept
        if let found { try Self.keep(found, in: records) }
        // What the running program has declared.
        let known = Mutex(found?.features ?? ProgramFeatures())
        let directory = manager.stateDirectory.appending("transfer")
        // Files of an earlier process are of no use.
        try? FileManager.default.removeItem(atPath: directory.string)
        try? FileManager.default.createDirectory(
            atPath: directory.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        var launch = try launch(
            manager.domain.source, settings, directory: directory,
            levels: (found?.level).map { [$0] } ?? ProgramProtocol.levels)
        launch.onNotice = { notice in
            switch notice {
            case .changed: manager.signalEnumerator()
            case .resolved(let code): manager.signalErrorResolved(code)
            }
        }
        let level = found?.level ?? ProgramProtocol.paths
        launch.onStart = { start in
            known.withLock { $0 = start.features ?? ProgramFeatures() }
            try Self.keep(start, in: records)
            guard start.level == level else {
                throw FileProviderError(
                    .serverUnreachable,
                    "the program serves '\(start.level)', which was not known until now; unmount the domain and mount it again"
                )
            }
        }
        let (host, files) = (ProgramHost(launch), TransferFiles(in: directory))
        if level == ProgramProtocol.items {
            return ProgramItemProvider(host: host, files: files) { known.withLock(\.self) }
        }
        let remote = ProgramRemote(
            host: host, files: files, features: { known.withLock(\.self) }, report: { manager.report($0) })
        return PathAddressedProvider(remote: remote, manager: manager)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        let found = Mutex<InitializeResult?>(nil)
        var launch = try launch(
            source, settings, directory: FilePath(directory.path), levels: ProgramProtocol.levels)
        launch.onStart = { start in found.withLock { $0 = start } }
        let host = ProgramHost(launch)
        try await closing(host.close) {
            _ = try await host.running()
            let start = found.withLock { $0 }
            let files = TransferFiles(in: launch.directory)
            if start?.level == ProgramProtocol.items {
                let provider = ProgramItemProvider(host: host, files: files) { ProgramFeatures() }
                _ = try await provider.item(for: .rootContainer, request: FileProviderRequest(reason: .lookup))
            } else {
                let remote = ProgramRemote(
                    host: host, files: files, features: { ProgramFeatures() }, report: { _ in })
                _ = try await remote.entry(at: .root)
            }
        }
        return found.withLock { $0 }
    }

    private func launch(
        _ source: String, _ settings: ProviderSettings, directory: FilePath, levels: [String]
    ) throws(FileProviderError) -> ProgramHost.Launch {
        guard let named = ProgramSource(source) else {
            throw FileProviderError(.providerNotFound, "'\(source)' is neither a program nor NAME:ANYTHING")
        }
        guard let program = program ?? named.program(in: settings.environment()) else {
            if let file = named.file(in: settings.environment()) {
                throw FileProviderError(.providerNotFound, "'\(file)' is not executable: run 'chmod +x \(file)'")
            }
            throw FileProviderError(
                .providerNotFound,
                "no provider serves '\(source)': "
                    + (ForeignSource.translation(of: source).map { "did you mean '\($0)'?" }
                        ?? "no kind of source begins so, and there is no program '\(named.programName)' in "
                        + ProgramSource.places(in: settings.environment(), isDaemon: isDaemon)))
        }
        if self.program == nil { try TrustedProgram.check(program) }
        return ProgramHost.Launch(
            program: program, environment: settings.environment,
            parameters: {
                InitializeParameters(
                    levels: levels, source: source, location: named.location, options: settings.options,
                    secrets: settings.secrets(),
                    directory: directory.string, readOnly: settings.isReadOnly)
            }, inactivityLimit: inactivityLimit, directory: directory, logger: settings.logger,
            placeOfErrors: isDaemon ? "see 'yonder log'" : "what it wrote to its standard error, if anything, is above")
    }

    // MARK: - The last start

    /// What a program that is not running has declared at its last start.
    private static let starts = ProviderStoreNamespace<InitializeResult>("program")

    private static func start(in records: ReportingStore) -> InitializeResult? {
        records.all(in: starts).first?.record
    }

    /// - Throws: `providerNotFound` if the program served another level before: its items had other identifiers.
    private static func keep(_ start: InitializeResult, in records: ReportingStore) throws {
        let kept = Self.start(in: records)
        guard kept != start else { return }
        if let kept, kept.level != start.level {
            throw FileProviderError(
                .providerNotFound,
                "the program serves '\(start.level)' now, and the domain was made with '\(kept.level)'; remove the domain and "
                    + "mount it again")
        }
        records.attempt { try $0.put(start, at: "start", in: starts) }
    }
}
