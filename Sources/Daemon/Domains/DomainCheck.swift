import Control
import FileNames
import FileProvider
import Foundation
import Logging
import Mount
import Replica
import Sync
import Syscalls
import SystemPackage

/// Checks one domain: its database, its contents, and its listings against the remote.
struct DomainCheck: Sendable {
    let name: String
    /// Whether every local file is fetched and compared.
    let comparesContent: Bool
    let isRepairing: Bool
    let options: DomainOptions
    /// Why the remote is not asked; nil if it is. A mounted domain knows itself.
    let pause: Connection.Pause?
    let catalog: ProviderCatalog
    let logger: Logger

    // MARK: - Mounted

    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt.
    func check(_ host: DomainHost) async throws -> CheckReport {
        var report = CheckReport(name: name)
        let findings = try await host.engine.checkReplica(isRepairing: isRepairing)
        report.add(findings, in: host.replica, below: host.mountpoint.fileNameText)
        await compare(host.engine, host.replica, below: host.mountpoint.fileNameText, &report)
        await host.mounted.drainNotifications()
        return report
    }

    // MARK: - Not mounted

    /// Checks a replica that is not open.
    func check(in directory: FilePath, source: String) async -> CheckReport {
        var report = CheckReport(name: name)
        do {
            let findings = try await BlockingWork.run { try ReplicaInspection.findings(in: directory) }
            guard findings.allSatisfy(\.isMended) || isRepairing else {
                report.add(findings, in: nil, below: nil)
                report.notCompared =
                    "the database has problems; 'yonder check \(ShellWord.escaped(name)) --repair' repairs them"
                return report
            }
            // With --repair the later check reports them.
            if !isRepairing { report.add(findings, in: nil, below: nil) }
            try await compare(in: directory, source: source, &report)
        } catch let damage as ReplicaDamage {
            await rebuild(in: directory, source: source, damage, &report)
        } catch {
            report.fail("\((error as? ControlError)?.message ?? "\(error)")")
        }
        return report
    }

    /// Rebuilds a damaged database if --repair was given.
    func rebuild(
        in directory: FilePath, source: String, _ damage: ReplicaDamage, _ report: inout CheckReport
    ) async {
        let text = "the database is damaged: \(damage)"
        guard isRepairing else {
            report.problems.append(.init(kind: "database", path: nil, inode: nil, message: text, isMended: false))
            report.notCompared =
                source.isEmpty
                ? DomainStore.wayOut(of: name)
                : "'yonder check \(ShellWord.escaped(name)) --repair' makes a new database from the remote, and keeps "
                    + "what is here"
            return
        }
        do {
            logger.warning("'\(name)': \(text); a new one is made from the remote")
            let findings = try await BlockingWork.run { [logger] in
                try ReplicaRebuild.run(in: directory, logger: logger)
            }
            report.problems.append(.init(kind: "database", path: nil, inode: nil, message: text, isMended: true))
            report.add(findings, in: nil, below: nil)
            // The damaged database may have contained the source.
            let record = try DomainRecord(ofReplicaIn: directory)
            try await compare(in: directory, source: record?.source ?? source, &report)
        } catch let damage as ReplicaDamage where source.isEmpty {
            report.fail("\(text); \(damage)")
            report.notCompared = DomainStore.wayOut(of: name)
        } catch {
            report.fail("\(text), and no new one can be made: \(error)")
        }
    }

    /// Opens a replica without mounting it.
    private func compare(in directory: FilePath, source: String, _ report: inout CheckReport) async throws {
        let replica = try await BlockingWork.run { [logger] in try Replica(at: directory, logger: logger) }
        defer { try? replica.close() }
        if isRepairing {
            let (findings, _) = try await BlockingWork.run { try replica.check(open: NothingOpen(), isRepairing: true) }
            report.add(findings, in: replica, below: nil)
        } else {
            report.add(replica.findings.map { CheckFinding(.contents, $0, isMended: true) }, in: nil, below: nil)
        }
        do {
            let manager = DomainManager(
                domain: FileProviderDomain(identifier: name, source: source, isReadOnly: options.isReadOnly),
                stateDirectory: directory.appending("provider"), replica: replica, logger: logger)
            try FileManager.default.createDirectory(
                atPath: manager.stateDirectory.string, withIntermediateDirectories: true)
            let engine = SyncEngine(
                provider: try catalog.provider(for: manager, options), replica: replica, open: NothingOpen(),
                kernel: NoKernel(), polling: .never, domainName: name, isReadOnly: options.isReadOnly,
                isInteractive: true, logger: logger)
            if let pause { engine.connection.pause(pause) }
            await compare(engine, replica, below: nil, &report)
            await engine.stop()
        } catch {
            report.notCompared = (error as? FileProviderError)?.message ?? "\(error)"
        }
    }

    private func compare(
        _ engine: SyncEngine, _ replica: Replica, below mountpoint: String?, _ report: inout CheckReport
    ) async {
        do {
            report.items = try replica.database.counts().knownItems
            let remote = try await engine.compareWithRemote(
                comparesBytes: comparesContent, isRepairing: isRepairing)
            report.directories = remote.directories
            report.files = remote.files
            report.bytes = remote.bytes
            report.add(remote.findings, in: replica, below: mountpoint)
        } catch {
            report.notCompared = (error as? FileProviderError)?.message ?? "\(error)"
        }
        report.unsent = try? replica.database.pendingCounts().items
    }

    private struct NoKernel: KernelCache {
        func forget(_ effects: ReplicaEffects) {}
    }
}

extension CheckReport {
    /// - Parameters:
    ///   - replica: resolves paths; nil if it cannot.
    ///   - mountpoint: the prefix of paths; nil for paths from the root.
    fileprivate mutating func add(_ findings: [CheckFinding], in replica: Replica?, below mountpoint: String?) {
        problems += findings.map { finding in
            let names = finding.inode.flatMap { number in
                (try? replica?.database.path(of: number, isForUser: true)).flatMap { $0 }
            }
            let path = names.map { ([mountpoint].compactMap(\.self) + $0).joined(separator: "/") }
            return Problem(
                kind: finding.kind.rawValue, path: path.flatMap { $0.isEmpty ? nil : $0 } ?? finding.name,
                inode: finding.inode?.rawValue, message: finding.text, isMended: finding.isMended)
        }
    }

    fileprivate mutating func fail(_ message: String) {
        problems.append(Problem(kind: "database", path: nil, inode: nil, message: message, isMended: false))
        notCompared = "nothing could be compared"
    }
}
