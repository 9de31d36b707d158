import Control
import FileProvider
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// Explains the state of an item in sentences.
struct WhyExplanation: Sendable {
    let host: DomainHost

    func lines(for item: ItemRecord) async throws -> [String] {
        let failure = try host.replica.database.failure(of: item.inode.number)
        let isMissing = item.inode.content != .materialized
        let transfers = await host.engine.transfers
        let transfer = isMissing ? transfers.first(where: { $0.number == item.inode.number }) : nil
        let isUploading = host.engine.isUploading(item)
        var lines = [try headline(of: item)]
        if let transfer {
            lines.append(await download(of: item, done: transfer.done, total: transfer.total))
        } else {
            lines.append(content(of: item, hasFailed: failure != nil))
        }
        if let place = item.trash {
            let path = PathResolver(host: host).originalPath(of: place)
            lines.append("It lies in the trash since \(Timestamp.text(place.date)); it was '\(path)'.")
        }
        if let original = try host.replica.database.originalName(ofConflictCopy: item) {
            lines.append(
                "It is a conflict copy: it was written here while '\(original)' was changed on the remote, which kept that "
                    + "name. 'yonder conflicts' lists all conflict copies, this one until it is removed, moved to another "
                    + "directory or given the name of the original.")
        }
        lines += try policy(of: item)
        lines += try await pending(of: item, isDownloading: transfer != nil, isUploading: isUploading)
        if item.inode.localBytes > 0, let cause = try host.replica.database.causeOfContent(of: item.inode.number) {
            lines.append("\(isMissing ? "What is here of its content" : "Its content") was fetched for \(cause).")
        }
        if let reader = host.budget.refused(FetchBudget.Place(domain: host.name, inode: item.inode.number)) {
            lines.append("It was not fetched for \(reader), which has reached its fetch budget.")
        }
        if let held = host.engine.heldRemovals { lines.append("Removals on the remote are held: \(held).") }
        if let failure = host.engine.failureOfChanges {
            lines.append("Its state on the remote may be another: \(failure).")
        }
        if isMissing || !item.changedFields.isEmpty, let failure = host.engine.connection.failure {
            let what = isMissing ? "Missing content cannot be fetched" : "It cannot be sent"
            lines.append("\(what) now: \(failure.message) (\(failure.code)).")
        }
        if let failure {
            let times = failure.attempts == 1 ? "" : ", \(failure.attempts) times in a row"
            let time = Timestamp.text(failure.failedAt)
            let which = transfer == nil && !isUploading ? "The last" : "An earlier"
            lines.append("\(which) attempt failed at \(time)\(times): \(failure.message) (\(failure.code)).")
        }
        if transfer == nil, let pause = await host.engine.nextDownload(of: item.inode.number) {
            let time = FileTimestamp.now.advanced(by: pause)
            lines.append("It will be fetched again at \(Timestamp.text(time)); 'yonder retry' retries it now.")
        }
        lines += try await eviction(of: item)
        lines += host.engine.remarks.map { "Of the remote: \($0)." }
        return lines
    }

    private func policy(of item: ItemRecord) throws -> [String] {
        guard let source = try host.replica.database.sourceOfPolicy(of: item) else { return [] }
        let place = PathResolver(host: host).path(of: source) ?? source.name
        let cause = source.inode.number == item.inode.number ? "" : ", because '\(place)' is"
        switch source.policy {
        case .inherited, .lazy: return []
        case .lazyEvictOnRemoteUpdate: return ["It is evicted when the remote changes it\(cause)."]
        case .keepDownloaded: return ["It is kept downloaded\(cause)."]
        }
    }

    /// A download under way. While the provider is not called, it waits.
    private func download(of item: ItemRecord, done: Int64, total: Int64) async -> String {
        let cause = await host.engine.causeOfDownload(of: item.inode.number)
        let what = cause.map { "for \($0)" } ?? "in the background"
        let progress = "\(ByteText.text(done)) of \(ByteText.text(total)) are here"
        return host.engine.connection.failure == nil
            ? "It is being downloaded \(what): \(progress)." : "Its download \(what) waits: \(progress)."
    }

    private func pending(of item: ItemRecord, isDownloading: Bool, isUploading: Bool) async throws -> [String] {
        if item.isExcluded { return [try exclusion(of: item)] }
        if item.isToBeOffered {
            return ["It waits to be recognized by the remote in a reimport; 'yonder status' shows how far that is."]
        }
        guard let state = try host.replica.database.pendingItem(item.id)?.state else {
            // Hardly a remote stores the creation date.
            var held = item.heldFields.subtracting(.creationDate)
            let truncated = item.truncatedDate
            if truncated != nil { held.remove(.contentModificationDate) }
            let words = PendingItem.words(for: held.names).joined(separator: ", ")
            let end = isDownloading ? "" : "; nothing is pending"
            return [
                held.isEmpty
                    ? "All its changes have been uploaded\(end)."
                    : "Nothing is to be uploaded; the remote does not store these, which stay on this machine: \(words)."
            ] + (truncated.map { ["The remote rounds its date to \(Timestamp.text($0))."] } ?? [])
        }
        let what =
            item.identifier == nil
            ? "The remote does not have it yet"
            : "Not on the remote yet: \(PendingItem.words(for: item.changedFields.names).joined(separator: ", "))"
        var lines = ["\(what); it has been waiting since \(Timestamp.text(state.since))."]
        if host.engine.isReadOnly, let obstacle = host.engine.obstacleToSending {
            lines.append("It is not uploaded: \(obstacle.message).")
        }
        if isUploading {
            lines.append("It is being uploaded.")
        } else if let next = state.nextTry {
            lines.append("It is tried again at \(Timestamp.text(next)); 'yonder retry' retries it now.")
        }
        let resolver = PathResolver(host: host)
        let above = try PrecedingChange.failed(above: item, resolver) ?? PrecedingChange.queued(above: item, resolver)
        lines += try [above, PrecedingChange.inside(item, resolver)].compactMap { $0?.sentence }
        return lines
    }

    private func exclusion(of item: ItemRecord) throws -> String {
        guard try host.replica.database.exclusion(of: item) == .name else {
            return "It stays on this machine: the remote does not support or accept it."
        }
        let ignored = host.replica.ignoredNames
        guard let pattern = ignored.pattern(for: item.name) else {
            if !ignored.isSent(item.name) {
                return "It stays on this machine: its name is not UTF-8, which the remote does not support."
            }
            return "It stays on this machine, because its directory does."
        }
        return "It stays on this machine: a name like '\(pattern)' is never sent."
    }

    private func headline(of item: ItemRecord) throws -> String {
        let inode = item.inode
        let time = Timestamp.text(inode.modifiedAt)
        let what =
            switch inode.kind {
            case .file: "A file of \(ByteText.text(inode.size))"
            case .directory: "A directory"
            case .symbolicLink: "A symbolic link"
            case .fifo: "A FIFO"
            case .characterDevice: "A character device"
            case .blockDevice: "A block device"
            case .socket: "A socket"
            }
        let name = try remoteName(of: item)
        return "\(what), modified \(time).\(name)"
    }

    /// The name that an item has on the remote, where it is another one: it was renamed here, or another item has that name.
    private func remoteName(of item: ItemRecord) throws -> String {
        guard let name = item.base.name, item.inode.number != .root, !item.name.utf8.elementsEqual(name.utf8) else {
            return ""
        }
        let database = host.replica.database
        let directory = try item.base.parent.flatMap { try database.item($0) }
        let holder = try directory.flatMap { try database.item(named: name, in: $0.inode.number) }
        let still = item.changedFields.contains(.filename) ? " still" : ""
        let other = holder == nil || holder?.id == item.id ? "" : ", which another item has here"
        return " On the remote its name is\(still) '\(name)'\(other)."
    }

    private func content(of item: ItemRecord, hasFailed: Bool) -> String {
        switch (item.inode.kind, item.inode.shownContent) {
        case (.symbolicLink, _): "Its target is always local."
        case (.fifo, _), (.characterDevice, _), (.blockDevice, _), (.socket, _): "It exists on this machine only."
        case (.directory, .materialized):
            hasFailed ? "Its listing is local." : "Its listing is local and is kept up to date."
        case (.directory, .partial): "It is being listed."
        case (.directory, .dataless): "Its listing is not local: the first access lists it."
        case (.file, .materialized): "Its content is here and takes \(ByteText.text(item.inode.localBytes))."
        case (.file, .partial):
            "\(ByteText.text(item.inode.localBytes)) of its content are here; reading the rest downloads it."
        case (.file, .dataless) where item.identifier == nil && !item.isToBeOffered && item.inode.size > 0:
            "Its content is not on this machine's disk any more, and the remote never had it: only its name is left."
        case (.file, .dataless): "Its content is not here: reading downloads it."
        }
    }

    /// Whether the item can be evicted, by the rule of the eviction itself.
    private func eviction(of item: ItemRecord) async throws -> [String] {
        let inode = item.inode
        guard inode.kind == .file || inode.kind == .directory, inode.number != .root, item.trashRole == .none else {
            return []
        }
        var refusal = try host.replica.evictionRefusal(of: item, open: host.volume.openInodes)
        let isWaitedFor = await !host.engine.waitersForDownload(of: inode.number).isEmpty
        if refusal == nil, isWaitedFor { refusal = .isDownloading }
        guard let refusal else {
            return inode.kind == .file && inode.localBytes > 0 ? ["It can be evicted."] : []
        }
        switch refusal {
        case .nonEvictable, .isHardLinked:
            // An item without local content has nothing to evict.
            guard inode.localBytes > 0 || inode.kind == .directory || item.trash != nil else { return [] }
        default: break
        }
        return ["It cannot be evicted now: \(await refusal.words(on: inode.number, of: host))."]
    }
}

extension EvictionRefusal {
    /// The reason in words, with the processes that cause it.
    func words(on number: InodeNumber, of host: DomainHost) async -> String {
        switch self {
        case .isOpen:
            let holders = OpenHolders(mountpoint: host.place.fileNameText, inode: number).find()
            if !holders.isEmpty { return "open in " + holders.map(\.description).joined(separator: ", ") }
            let readers = await host.engine.waitersForDownload(of: number).compactMap(\.self)
            return readers.isEmpty ? words : "it is being read by " + readers.joined(separator: ", ")
        case .isDownloading:
            let waiters = Set(await host.engine.waitersForDownload(of: number).compactMap(\.self)).sorted()
            return waiters.isEmpty ? words : words + " for " + waiters.joined(separator: ", ")
        case .nonEvictable:
            guard let item = try? host.replica.database.item(ofInode: number) else { return words }
            guard item.trash == nil else { return "it is in the trash, which is kept on this machine" }
            guard let source = try? host.replica.database.sourceOfPolicy(of: item), source.inode.number != number,
                source.policy == .keepDownloaded, let place = PathResolver(host: host).path(of: source)
            else { return words }
            return "it is kept downloaded, because '\(place)' is; 'yonder unpin' that first"
        default: return words
        }
    }
}
