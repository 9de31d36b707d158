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
        var suspects: [Suspect] = []
        for (number, identifier) in try replica.database.materializedDirectories() {
            try Task.checkCancellation()
            report.directories += 1
            let found = try await differences(in: number, identifier)
            if !found.isEmpty { suspects.append(Suspect(number: number, identifier: identifier, differences: found)) }
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

    /// A directory that differs from the remote's.
    private struct Suspect {
        var number: InodeNumber
        var identifier: ItemIdentifier
        var differences: [RemoteDifference]
    }

    /// A difference may be a change of this moment. One that remains after the next round, in which the remote has not changed, is
    /// reported, and repaired by listing the directory again.
    private func settle(
        _ suspects: [Suspect], isRepairing: Bool, _ report: inout RemoteCheckReport
    ) async throws {
        await feed.compareAllNext()
        try await feed.refresh()
        let found = try await lasting(suspects)
        // One may have begun meanwhile.
        try expectNoReimport()
        guard isRepairing, !found.isEmpty else {
            report.findings += found.flatMap(\.differences).map(\.finding)
            return
        }
        for directory in found {
            let number = directory.number
            try await commits.commit { try $0.listings.noteIncomplete(number) }
        }
        try await feed.refresh()
        var left: Set<ItemIdentifier> = []
        for directory in found {
            left.formUnion(try await differences(in: directory.number, directory.identifier).map(\.identifier))
        }
        for directory in found {
            report.findings += directory.differences.map { difference in
                var finding = difference.finding
                finding.isMended = !left.contains(difference.identifier)
                if finding.isMended { finding.text += ": it is as the remote has it now" }
                return finding
            }
        }
    }

    /// Compares directories again.
    ///
    /// - Returns: those in which the remote is as it was and the replica still differs.
    private func lasting(_ directories: [Suspect]) async throws -> [Suspect] {
        var found: [Suspect] = []
        for var directory in directories {
            directory.differences = try await differences(in: directory.number, directory.identifier)
                .lasting(since: directory.differences)
            if !directory.differences.isEmpty { found.append(directory) }
        }
        return found
    }

    private func differences(
        in number: InodeNumber, _ directory: ItemIdentifier
    ) async throws -> [RemoteDifference] {
        let observation = replica.ordering.observe()
        let rows = try replica.database.remoteItems.children(of: directory).children
        let listing: ComparedListing
        do throws(FileProviderError) {
            listing = try await list(directory, beside: rows)
        } catch {
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .parkItem, .changeState, .giveUpAsking, .retry: break
            }
            let finding = CheckFinding(.remote, "the remote does not list it: \(error.message)", inode: number)
            return [RemoteDifference(identifier: directory, remote: nil, finding: finding)]
        }
        if listing.isAsKnown { return [] }
        let found = try differences(of: listing, in: number, directory)
        if found.isEmpty { return [] }
        // Of these something newer than the listing is known, or an operation on them is in flight.
        let ordering = replica.ordering
        let newer = await ordering.settle(
            found.compactMap(\.remote), deleted: found.filter { $0.remote == nil }.map(\.identifier), observation
        ).all
        return found.filter {
            !newer.contains($0.identifier) && !ordering.isStale($0.identifier, observation, isListing: true)
        }
    }

    private func differences(
        of listing: ComparedListing, in number: InodeNumber, _ directory: ItemIdentifier
    ) throws -> [RemoteDifference] {
        let database = replica.database
        // Again, because a listing takes time.
        let (known, doomed) = try database.remoteItems.children(of: directory)
        var found: [RemoteDifference] = []
        func note(_ text: String, _ identifier: ItemIdentifier, _ inode: InodeNumber?, _ name: String) {
            let finding = CheckFinding(.remote, text, inode: inode, name: name)
            found.append(RemoteDifference(identifier: identifier, remote: listing.others[identifier], finding: finding))
        }
        let hasByteNames = replica.ignoredNames.sendsByteNames
        for (identifier, item) in listing.others
        where item.reasonNotToShow(withByteNames: hasByteNames) == nil && !doomed.contains(identifier) {
            guard let child = known[identifier] else {
                // One that is moved here has its old place until the remote has heard of it.
                if try database.item(identifier)?.changedFields.isEmpty != false,
                    try !database.remoteItems.isHeldBack(item.filename, in: directory)
                {
                    let path = (try database.path(of: number, isForUser: true) ?? []) + [item.filename]
                    note("the remote has it, and it is not known here", identifier, nil, path.joined(separator: "/"))
                }
                continue
            }
            if child.isChanging { continue }
            if child.isHidden { note("it is not shown here", identifier, child.inode, child.name) }
            if !child.name.utf8.elementsEqual(item.filename.utf8) {
                note("it is called '\(item.filename)' on the remote", identifier, child.inode, child.name)
            }
            if child.kind == .file, child.contentVersion != item.itemVersion.contentVersion {
                note("the remote has another version", identifier, child.inode, child.name)
            }
        }
        for (identifier, child) in known where !listing.contains(identifier) && !child.isChanging {
            note("the remote does not have it", identifier, child.inode, child.name)
        }
        return found.sorted { ($0.finding.name ?? "") < ($1.finding.name ?? "") }
    }

    private func list(
        _ directory: ItemIdentifier, beside rows: [ItemIdentifier: KnownChild]
    ) async throws(FileProviderError) -> ComparedListing {
        var listing = ComparedListing(rows: rows, hasByteNames: replica.ignoredNames.sendsByteNames)
        do {
            try await calls.enumerate(directory, for: request, wasSeen: { listing.contains($0) }) { found in
                for item in found { listing.take(item) }
                return true
            }
            return listing
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
