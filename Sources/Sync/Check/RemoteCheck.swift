import FileProvider
import Replica
import SystemPackage

package struct RemoteCheckReport: Sendable {
    package var findings: [CheckFinding] = []
    package var directories = 0
    /// How many files were compared byte by byte.
    package var files = 0
    package var bytes: Int64 = 0
}

/// Compares the replica with the provider: the children of every listed directory, and on request the bytes of every
/// materialized file. Remote changes are taken in first, so that nothing should differ.
struct RemoteCheck: SyncPart {
    let context: SyncContext
    let feed: ChangeFeed
    private let request = FileProviderRequest(reason: .synchronization)
    private static let filesAtOnce = 64

    init(_ context: SyncContext, feed: ChangeFeed) {
        self.context = context
        self.feed = feed
    }

    /// - Throws: what the provider says when nothing can be compared; `providerDomainTemporarilyUnavailable` during a reimport.
    func run(comparesBytes: Bool, isRepairing: Bool) async throws -> RemoteCheckReport {
        var report = RemoteCheckReport()
        try expectNoReimport()
        await feed.compareAllNext()
        try await feed.refresh()
        var suspects: [(number: InodeNumber, identifier: ItemIdentifier)] = []
        for directory in try replica.database.materializedDirectories() {
            try Task.checkCancellation()
            report.directories += 1
            if try await !differences(in: directory.number, directory.identifier).isEmpty { suspects.append(directory) }
        }
        if !suspects.isEmpty { try await settle(suspects, isRepairing: isRepairing, &report) }
        if comparesBytes { try await compareBytes(isRepairing: isRepairing, &report) }
        return report
    }

    /// Items that wait to be offered have no identifiers, so that all that the remote has of them would look unknown.
    private func expectNoReimport() throws {
        guard try replica.database.reimports.requests().isEmpty else {
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "a reimport is under way, which 'yonder status' shows: check again when it is complete")
        }
    }

    // MARK: - Directories

    /// A difference may be a change of this moment. One that remains after the next round is reported, and repaired
    /// by listing the directory again.
    private func settle(
        _ suspects: [(number: InodeNumber, identifier: ItemIdentifier)], isRepairing: Bool,
        _ report: inout RemoteCheckReport
    ) async throws {
        await feed.compareAllNext()
        try await feed.refresh()
        var found: [(number: InodeNumber, identifier: ItemIdentifier, findings: [CheckFinding])] = []
        for (number, identifier) in suspects {
            let findings = try await differences(in: number, identifier)
            if !findings.isEmpty { found.append((number, identifier, findings)) }
        }
        // One may have begun meanwhile.
        try expectNoReimport()
        guard isRepairing, !found.isEmpty else {
            report.findings += found.flatMap(\.findings)
            return
        }
        for (number, _, _) in found { try await commits.commit { try $0.listings.noteIncomplete(number) } }
        try await feed.refresh()
        for (number, identifier, findings) in found {
            let left = Set(try await differences(in: number, identifier))
            report.findings += findings.map { finding in
                var finding = finding
                finding.isMended = !left.contains(finding)
                if finding.isMended { finding.text += ": it is as the remote has it now" }
                return finding
            }
        }
    }

    private func differences(in number: InodeNumber, _ directory: ItemIdentifier) async throws -> [CheckFinding] {
        let remote: [ItemIdentifier: FileProviderItem]
        do throws(FileProviderError) {
            remote = try await list(directory)
        } catch {
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .parkItem, .changeState, .giveUpAsking, .retry: break
            }
            return [CheckFinding(.remote, "the remote does not list it: \(error.message)", inode: number)]
        }
        let (known, doomed) = try replica.database.remoteItems.children(of: directory)
        var findings: [CheckFinding] = []
        for (identifier, item) in remote where item.defect == nil && !doomed.contains(identifier) {
            guard let child = known[identifier] else {
                // One that is moved here has its old place until the remote has heard of it.
                if try replica.database.item(identifier)?.changedFields.isEmpty != false {
                    findings.append(
                        CheckFinding(.remote, "the remote has it, and it is not known here", name: item.filename))
                }
                continue
            }
            if child.isChanging { continue }
            if child.isHidden {
                findings.append(CheckFinding(.remote, "it is not shown here", inode: child.inode, name: child.name))
            }
            if !child.name.utf8.elementsEqual(item.filename.utf8) {
                findings.append(
                    CheckFinding(
                        .remote, "it is called '\(item.filename)' on the remote", inode: child.inode, name: child.name))
            }
            if child.kind == .file, child.contentVersion != item.itemVersion.contentVersion {
                findings.append(
                    CheckFinding(.remote, "the remote has another version", inode: child.inode, name: child.name))
            }
        }
        for (identifier, child) in known where remote[identifier] == nil && !child.isChanging {
            findings.append(CheckFinding(.remote, "the remote does not have it", inode: child.inode, name: child.name))
        }
        return findings.sorted { ($0.name ?? "") < ($1.name ?? "") }
    }

    private func list(_ directory: ItemIdentifier) async throws(FileProviderError) -> [ItemIdentifier: FileProviderItem]
    {
        var items: [ItemIdentifier: FileProviderItem] = [:]
        do {
            try await calls.enumerate(directory, for: request, wasSeen: { items[$0] != nil }) { found in
                for item in found { items[item.itemIdentifier] = item }
                return true
            }
            return items
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    // MARK: - Bytes

    private func compareBytes(isRepairing: Bool, _ report: inout RemoteCheckReport) async throws {
        var last = InodeNumber(rawValue: 0)
        while case let files = try replica.database.cleanFiles(after: last, limit: Self.filesAtOnce),
            let next = files.last
        {
            last = next.inode.number
            for file in files {
                try Task.checkCancellation()
                try await compareBytes(of: file, isRepairing: isRepairing, &report)
            }
        }
    }

    private func compareBytes(
        of file: ItemRecord, isRepairing: Bool, _ report: inout RemoteCheckReport
    ) async throws {
        guard let identifier = file.identifier else { return }
        let number = file.inode.number
        let isEqual: Bool
        do {
            let remote = try await calls.make(.item, for: request) { [request] in
                try await $0.item(for: identifier, request: request)
            }
            // A change to another version has not been taken in yet.
            guard remote.itemVersion.contentVersion == file.inode.contentVersion else { return }
            isEqual = try await ContentComparison(context: context).isEqual(remote, to: number)
        } catch let error as FileProviderError {
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .changeState: return
            case .parkItem, .giveUpAsking, .retry: break
            }
            report.findings.append(
                CheckFinding(.bytes, "it cannot be compared: \(error.message)", inode: number, name: file.nameForUser))
            return
        }
        report.files += 1
        report.bytes = report.bytes.saturatingAdd(file.inode.size)
        // A local write meanwhile makes it different, and is no damage.
        guard !isEqual, let now = try replica.database.item(ofInode: number), !now.changedFields.contains(.contents),
            now.inode.contentStamp == nil, now.inode.contentGeneration == file.inode.contentGeneration,
            now.inode.content == .materialized
        else { return }
        var finding = CheckFinding(.bytes, "its bytes are not the remote's", inode: number, name: file.nameForUser)
        if isRepairing {
            let generation = file.inode.contentGeneration
            finding.isMended = try await commits.commit(changingNames: false) {
                try $0.versions.distrust(number, generation: generation, because: "its bytes are not the remote's")
            }
            finding.text +=
                finding.isMended
                ? ": they were moved to '\(replica.directory.appending("recovered"))', it is dataless now"
                : ": it is in use, and mended when it is not"
        }
        report.findings.append(finding)
    }
}
