import FileProvider
import Replica
import SystemPackage

package struct EvictionReport: Sendable {
    package var evictedFiles = 0
    package var freedBytes: Int64 = 0
    package var refusals: [(number: InodeNumber, refusal: EvictionRefusal)] = []
    /// Directories whose listing stays, because they hold what exists on this machine only and is never uploaded. That is no
    /// refusal. The root, which holds the trash, is none of them.
    package var stillListed: [InodeNumber] = []
}

/// Makes items dataless, directories with all below them: children first, then the listing.
struct Eviction: SyncPart {
    let context: SyncContext
    let downloads: Downloads
    let listings: Listings
    let directoryPrefetcher: DirectoryPrefetcher
    let filePrefetcher: FilePrefetcher
    let listingRetries: ListingRetries

    private static let batch = 256
    private static let mostReported = 100

    /// The result for one item.
    private enum Outcome {
        case evicted
        /// It keeps what belongs to this machine alone, and nothing else.
        case stays
        case refused
    }

    /// - Parameters:
    ///   - isStrict: stop at the first that refuses; else go on and report every one.
    ///   - progress: called after each file.
    /// - Throws: `CancellationError`, and what the replica throws.
    func evict(
        _ number: InodeNumber, isStrict: Bool, progress: @Sendable (EvictionReport) -> Void
    ) async throws -> EvictionReport {
        var report = EvictionReport()
        guard let inode = try replica.database.inode(number) else {
            report.refusals.append((number, .noSuchItem))
            return report
        }
        // Prefetching would bring back what was just evicted.
        await directoryPrefetcher.leaveAlone(number)
        await filePrefetcher.leaveAlone(number)
        await listingRetries.forget(below: number)
        do {
            _ = try await evict(inode, isStrict: isStrict, &report, progress)
        } catch {
            await allow(number)
            throw error
        }
        await allow(number)
        return report
    }

    private func allow(_ number: InodeNumber) async {
        await directoryPrefetcher.allow(number)
        await filePrefetcher.allow(number)
    }

    private func evict(
        _ inode: InodeRecord, isStrict: Bool, _ report: inout EvictionReport,
        _ progress: @Sendable (EvictionReport) -> Void
    ) async throws -> Outcome {
        try Task.checkCancellation()
        switch inode.kind {
        case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket:
            return .evicted
        case .file:
            // A pinned or edited file refuses even when there is nothing to drop: it is not what was asked for.
            return try await evictFile(inode, &report, progress) ? .evicted : .refused
        case .directory:
            // One word for all of it, and not one for every child.
            if let item = try replica.database.item(ofInode: inode.number),
                try replica.effectivePolicy(of: item) == .keepDownloaded
                    || item.trashRole != .none || replica.database.isInTrash(inode.number)
            {
                report.refusals.append((inode.number, .nonEvictable))
                return .refused
            }
            var outcome = Outcome.evicted
            var last: Int64 = 0
            while true {
                let children = try replica.database.itemsToEvict(in: inode.number, after: last, limit: Self.batch)
                guard let end = children.last?.id else { break }
                last = end
                for child in children {
                    switch try await evict(child.inode, isStrict: isStrict, &report, progress) {
                    case .evicted: break
                    case .stays: if outcome == .evicted { outcome = .stays }
                    case .refused: outcome = .refused
                    }
                    if isStrict, outcome == .refused { return .refused }
                }
            }
            guard outcome == .evicted else { return outcome }
            return try await evictListing(of: inode, &report)
        }
    }

    private func evictListing(of inode: InodeRecord, _ report: inout EvictionReport) async throws -> Outcome {
        let number = inode.number
        // What is in the trash stays here, and so does what leads there.
        if try replica.database.holdsWhatStaysHere(number) {
            if report.stillListed.count < Self.mostReported,
                try replica.database.holdsWhatStaysHere(number, besideTrash: true)
            {
                report.stillListed.append(number)
            }
            return .stays
        }
        guard await listings.stop(number) else {
            report.refusals.append((number, .isBeingListed))
            return .refused
        }
        do {
            commits.publish(try await replica.evictListing(of: number))
            // Nothing was there to drop of a directory that was not listed.
            if inode.content == .materialized { events.tell(.evicted, of: number, named: name(of: number)) }
            return .evicted
        } catch let refusal as EvictionRefusal {
            let obstacles = try replica.database.obstaclesToEvictingListing(of: number, limit: Self.mostReported)
            report.refusals += obstacles.isEmpty ? [(number, refusal)] : obstacles
            return .refused
        }
    }

    private func evictFile(
        _ inode: InodeRecord, _ report: inout EvictionReport, _ progress: @Sendable (EvictionReport) -> Void
    ) async throws -> Bool {
        do throws(EvictionRefusal) {
            guard await downloads.stop(inode.number) else {
                throw open.isOpen(inode.number) ? .isOpen : .isDownloading
            }
            do {
                let (freed, effects) = try await replica.evictFile(inode.number, open: open)
                commits.publish(effects)
                report.evictedFiles += 1
                report.freedBytes = report.freedBytes.saturatingAdd(freed)
                // Nothing was there to evict of a dataless file.
                if freed > 0 { events.tell(.evicted, of: inode.number, named: name(of: inode.number), bytes: freed) }
            } catch let refusal as EvictionRefusal {
                throw refusal
            } catch {
                throw EvictionRefusal.failed((error as? FileProviderError)?.errno ?? error as? Errno ?? .ioError)
            }
            progress(report)
            return true
        } catch {
            // Its other names are no other file.
            if error != .isHardLinked || !report.refusals.contains(where: { $0.number == inode.number }) {
                report.refusals.append((inode.number, error))
            }
            return false
        }
    }
}
