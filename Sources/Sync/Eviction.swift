import FileProvider
import Replica

/// What evicting came to.
package struct EvictionReport: Sendable {
    package var evictedFiles = 0
    package var freedBytes: Int64 = 0
    package var refusals: [(number: InodeNumber, refusal: EvictionRefusal)] = []

    package init() {}
}

/// Makes items dataless, directories with all below them: children first, then the listing.
struct Eviction: Sendable {
    let replica: Replica
    let open: any OpenInodes
    let commits: Commits
    let downloads: Downloads
    let events: SyncEvents

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
        _ = try await evict(inode, isStrict: isStrict, &report, progress)
        return report
    }

    /// Makes a file dataless to make room, unless somebody has a use for it.
    ///
    /// - Returns: how many bytes came back; nil when it stays.
    func giveUp(_ number: InodeNumber) async -> Int64? {
        guard !open.isOpen(number), (try? replica.database.isKept(number)) == false, await downloads.stop(number),
            let (freed, effects) = try? await replica.evictFile(number, open: open)
        else { return nil }
        commits.publish(effects)
        let name = (try? replica.database.item(ofInode: number))?.name ?? ""
        events.tell(.evicted, of: number, named: name, bytes: freed)
        return freed
    }

    /// - Returns: whether all of it is dataless now.
    private func evict(
        _ inode: InodeRecord, isStrict: Bool, _ report: inout EvictionReport,
        _ progress: @Sendable (EvictionReport) -> Void
    ) async throws -> Bool {
        try Task.checkCancellation()
        switch inode.kind {
        case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket:
            return true
        case .file:
            // A pinned or edited file refuses even when there is nothing to drop: it is not what was asked for.
            return try await evictFile(inode, &report, progress)
        case .directory:
            // One word for all of it, and not one for every child.
            if let item = try replica.database.item(ofInode: inode.number),
                try replica.effectivePolicy(of: item) == .keepDownloaded
            {
                report.refusals.append((inode.number, .nonEvictable))
                return false
            }
            var isEmptied = true
            let children = try replica.database.items(in: inode.number)
            // What is in the trash stays here, and so does what leads there.
            let holdsTrash = children.contains { $0.trashRole != .none }
            for child in children where child.trashRole == .none && Self.holdsAnything(child.inode) {
                isEmptied = try await evict(child.inode, isStrict: isStrict, &report, progress) && isEmptied
                if isStrict, !isEmptied { return false }
            }
            guard isEmptied else { return false }
            if holdsTrash { return true }
            do {
                commits.publish(try await replica.evictListing(of: inode.number))
                return true
            } catch let refusal as EvictionRefusal {
                report.refusals.append((inode.number, refusal))
                return false
            }
        }
    }

    private static func holdsAnything(_ inode: InodeRecord) -> Bool {
        switch inode.kind {
        case .directory: true
        case .file: inode.content == .partial || inode.localBytes > 0
        case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket: false
        }
    }

    private func evictFile(
        _ inode: InodeRecord, _ report: inout EvictionReport, _ progress: @Sendable (EvictionReport) -> Void
    ) async throws -> Bool {
        do throws(EvictionRefusal) {
            guard await downloads.stop(inode.number) else { throw .isOpen }
            do {
                let (freed, effects) = try await replica.evictFile(inode.number, open: open)
                commits.publish(effects)
                report.evictedFiles += 1
                report.freedBytes += freed
            } catch let refusal as EvictionRefusal {
                throw refusal
            } catch {
                throw EvictionRefusal.noSuchItem
            }
            progress(report)
            return true
        } catch {
            report.refusals.append((inode.number, error))
            return false
        }
    }
}
