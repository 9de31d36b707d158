import FileProvider
import Foundation
import PathAddressing
import ProviderDescriptors
import Synchronization
import SystemPackage

/// Makes the providers of `NAME:ANYTHING` sources, which programs serve.
package struct ProgramProviderFactory: ProviderFactory {
    private let program: String?
    private let inactivityLimit: Duration

    /// - Parameters:
    ///   - program: the path of the executable; nil to search it by the name in the source.
    ///   - inactivityLimit: the time without progress after which a program has hung.
    package init(program: String? = nil, inactivityLimit: Duration = .seconds(60)) {
        self.program = program
        self.inactivityLimit = inactivityLimit
    }

    package var descriptor: ProviderDescriptor { .program }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        let records = ReportingStore(of: manager)
        if let found = findings as? ProgramFeatures { Self.keep(found, in: records) }
        let known = SharedFeatures(Self.kept(in: records))
        let directory = manager.stateDirectory.appending("transfer")
        // Files of an earlier process are of no use.
        try? FileManager.default.removeItem(atPath: directory.string)
        try? FileManager.default.createDirectory(
            atPath: directory.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        var launch = try launch(
            manager.domain.source, settings, directory: directory, isReadOnly: manager.domain.isReadOnly)
        launch.onChange = { manager.signalEnumerator() }
        launch.onFeatures = { features in
            known.value = features
            Self.keep(features, in: records)
        }
        let remote = ProgramRemote(
            host: ProgramHost(launch), files: TransferFiles(in: directory), features: { known.value },
            report: { manager.report($0) })
        return PathAddressedProvider(remote: remote, manager: manager)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        let known = SharedFeatures(ProgramFeatures())
        let remote = try remote(source, settings, in: FilePath(directory.path), known)
        do {
            _ = try await remote.entry(at: .root)
        } catch {
            await remote.close()
            throw error
        }
        await remote.close()
        return known.value
    }

    /// Makes the remote of a source without a domain.
    ///
    /// - Parameter directory: for content files; exists.
    package func remote(
        _ source: String, _ settings: ProviderSettings, in directory: FilePath
    ) throws -> any PathRemote {
        try remote(source, settings, in: directory, SharedFeatures(ProgramFeatures()))
    }

    private func remote(
        _ source: String, _ settings: ProviderSettings, in directory: FilePath, _ known: SharedFeatures
    ) throws -> ProgramRemote {
        var launch = try launch(source, settings, directory: directory, isReadOnly: false)
        launch.onFeatures = { known.value = $0 }
        return ProgramRemote(
            host: ProgramHost(launch), files: TransferFiles(in: directory), features: { known.value },
            report: { _ in })
    }

    private func launch(
        _ source: String, _ settings: ProviderSettings, directory: FilePath, isReadOnly: Bool
    ) throws(FileProviderError) -> ProgramHost.Launch {
        guard let named = ProgramSource(source) else {
            throw FileProviderError(.providerNotFound, "'\(source)' is no NAME:ANYTHING")
        }
        guard let program = program ?? named.program(in: settings.environment()) else {
            throw FileProviderError(
                .providerNotFound,
                "no provider serves '\(source)': no kind of source begins so, and there is no program "
                    + "'\(named.programName)' in \(ProgramSource.places)")
        }
        return ProgramHost.Launch(
            program: program, environment: settings.environment,
            parameters: {
                InitializeParameters(
                    source: source, location: named.location, options: settings.options, secrets: settings.secrets(),
                    directory: directory.string, readOnly: isReadOnly)
            }, inactivityLimit: inactivityLimit, directory: directory, logger: settings.logger)
    }

    // MARK: - Features

    /// The features of a program that is not running: those of its last start.
    private static let features = ProviderStoreNamespace<ProgramFeatures>("program")

    private static func kept(in records: ReportingStore) -> ProgramFeatures {
        records.all(in: features).first?.record ?? ProgramFeatures()
    }

    private static func keep(_ found: ProgramFeatures, in records: ReportingStore) {
        guard kept(in: records) != found else { return }
        records.attempt { try $0.put(found, at: "features", in: features) }
    }
}

/// The features that the running program has declared.
private final class SharedFeatures: Sendable {
    private let features: Mutex<ProgramFeatures>

    init(_ features: ProgramFeatures) {
        self.features = Mutex(features)
    }

    var value: ProgramFeatures {
        get { features.withLock { $0 } }
        set { features.withLock { $0 = newValue } }
    }
}
