import FileProvider
import FileProviderPaths
import Foundation
import ProgramProvider
import ProviderDescriptors
import SystemPackage

/// Makes the providers of `rclone:` sources, through the user's own rclone and its configuration.
package struct RcloneProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .rclone }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        let records = ReportingStore(of: manager)
        if let found = findings as? RcloneFeatures { Self.keep(found, in: records) }
        let directory = manager.stateDirectory.appending("rclone")
        // Files of an earlier process are of no use.
        try? FileManager.default.removeItem(atPath: directory.string)
        let remote = try Self.remote(
            manager.domain.source, settings, in: directory, Self.kept(in: records), report: { manager.report($0) }
        ) { Self.keep($0, in: records) }
        return PathAddressedProvider(remote: remote, manager: manager)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let remote = try Self.remote(source, settings, in: FilePath(directory.path), nil) { _ in }
        return try await closing(remote.close) {
            try await remote.host.reading { session in
                _ = try await remote.entry(at: .root)
                return try await remote.features(session)
            }
        }
    }

    /// - Parameters:
    ///   - directory: for the socket and copies of uploads; made here.
    ///   - report: tells the user of something.
    static func remote(
        _ source: String, _ settings: ProviderSettings, in directory: FilePath, _ features: RcloneFeatures?,
        report: @escaping @Sendable (String) -> Void = { _ in },
        onFeatures: @escaping @Sendable (RcloneFeatures) -> Void
    ) throws -> RcloneRemote {
        let source = try RcloneSource(source)
        try? FileManager.default.createDirectory(
            atPath: directory.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let launch = RcloneSession.Launch(
            program: settings.environment()["YONDER_RCLONE"] ?? "rclone",
            environment: { environment(settings.environment(), settings.secrets()) }, directory: directory.string,
            remote: source.remote, logger: settings.logger)
        return RcloneRemote(
            host: RcloneHost(launch), source: source, files: TransferFiles(in: directory),
            features: features, report: report, onFeatures: onFeatures)
    }

    /// The environment of rclone. Of its own variables only those that say where and how its configuration is: others, such as
    /// `RCLONE_DRY_RUN` and filters, would change what a call does.
    private static func environment(_ given: [String: String], _ secrets: [String: String]) -> [String: String] {
        var environment = given.filter { name, _ in
            !name.hasPrefix("RCLONE_") || name == "RCLONE_CONFIG" || name.hasPrefix("RCLONE_CONFIG_")
                || name == "RCLONE_PASSWORD_COMMAND"
        }
        if let password = secrets["config-password"] { environment["RCLONE_CONFIG_PASS"] = password }
        // Times of folders of this machine come in the local zone.
        environment["TZ"] = "UTC"
        return environment
    }

    // MARK: - Features

    private static let features = ProviderStoreNamespace<RcloneFeatures>("rclone")

    private static func kept(in records: ReportingStore) -> RcloneFeatures? {
        records.all(in: features).first?.record
    }

    private static func keep(_ found: RcloneFeatures, in records: ReportingStore) {
        guard kept(in: records) != found else { return }
        records.attempt { try $0.put(found, at: "features", in: features) }
    }
}
