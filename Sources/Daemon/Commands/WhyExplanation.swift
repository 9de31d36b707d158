import Control
import FileProvider
import Replica
import Sync
import SystemPackage
import Volume

/// Says in words why an item is as it is.
struct WhyExplanation: Sendable {
    let host: DomainHost

    func lines(for item: ItemRecord) async throws -> [String] {
        var lines = [headline(of: item), content(of: item)]
        if let place = item.trash {
            let path = PathResolver(host: host).originalPath(of: place)
            lines.append("It lies in the trash since \(Timestamp.text(place.date)); it was '\(path)'.")
        }
        lines += try policy(of: item)
        lines += try await pending(of: item)
        if let transfer = await host.engine.transfers.first(where: { $0.number == item.inode.number }) {
            let cause = await host.engine.causeOfDownload(of: item.inode.number)
            lines.append(
                "It is being downloaded \(cause.map { "for \($0)" } ?? "in the background"): \(ByteText.text(transfer.done)) of \(ByteText.text(transfer.total)) are here."
            )
        }
        if item.inode.localBytes > 0, let cause = try host.replica.database.causeOfContent(of: item.inode.number) {
            lines.append("Its content was fetched for \(cause).")
        }
        if let reader = host.budget.refused(FetchBudget.Place(domain: host.name, inode: item.inode.number)) {
            lines.append("It was not fetched for \(reader), which has had as much fetched as a process may.")
        }
        if let failure = host.engine.connection.failure {
            lines.append("What is not here cannot be had now: \(failure.message) (\(failure.code)).")
        }
        if let failure = try host.replica.database.failure(of: item.inode.number) {
            let times = failure.attempts == 1 ? "" : ", \(failure.attempts) times in a row"
            let time = Timestamp.text(seconds: failure.failedAt.seconds, nanoseconds: failure.failedAt.nanoseconds)
            lines.append("The last attempt failed at \(time)\(times): \(failure.message) (\(failure.code)).")
        }
        if let pause = await host.engine.nextDownload(of: item.inode.number) {
            let time = Replica.now.advanced(by: pause)
            lines.append("It is fetched again at \(Timestamp.text(time)); 'yonder retry' does it now.")
        }
        lines += try eviction(of: item)
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

    private func pending(of item: ItemRecord) async throws -> [String] {
        if item.isExcluded { return [try exclusion(of: item)] }
        if item.isToBeOffered {
            return ["It waits to be recognized by the remote in a reimport; 'yonder status' shows how far that is."]
        }
        guard let state = try host.replica.database.pendingItem(item.id)?.state else {
            return ["Every change of it is on the remote; nothing is pending."]
        }
        let what =
            item.identifier == nil
            ? "The remote does not have it yet"
            : "Not on the remote yet: \(item.changedFields.names.joined(separator: ", "))"
        var lines = ["\(what); it waits since \(Timestamp.text(state.since))."]
        if await host.engine.isUploading(item) { lines.append("It is on its way.") }
        if let next = state.nextTry {
            lines.append("It is tried again at \(Timestamp.text(next)); 'yonder retry' does it now.")
        }
        return lines
    }

    private func exclusion(of item: ItemRecord) throws -> String {
        guard try host.replica.database.exclusion(of: item) == .name else {
            return "It stays on this machine: the remote has no such items, or does not want it."
        }
        let ignored = host.replica.ignoredNames
        guard let pattern = ignored.pattern(for: item.name) else {
            if !ignored.isSent(item.name) {
                return "It stays on this machine: its name is not UTF-8, and the remote cannot have such a name."
            }
            return "It stays on this machine, because the directory does that it is in."
        }
        return "It stays on this machine: what is called like '\(pattern)' is never sent."
    }

    private func headline(of item: ItemRecord) -> String {
        let inode = item.inode
        let time = Timestamp.text(seconds: inode.modifiedAt.seconds, nanoseconds: inode.modifiedAt.nanoseconds)
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
        let renamed =
            item.base.name.flatMap { item.name.utf8.elementsEqual($0.utf8) || item.inode.number == .root ? nil : $0 }
        let other = renamed.map { " On the remote it is called '\($0)', as another item here is." } ?? ""
        return "\(what), modified \(time).\(other)"
    }

    private func content(of item: ItemRecord) -> String {
        switch (item.inode.kind, item.inode.content) {
        case (.symbolicLink, _): "Its target is always here."
        case (.fifo, _), (.characterDevice, _), (.blockDevice, _), (.socket, _): "It exists on this machine only."
        case (.directory, .materialized): "Its listing is here and is kept up to date."
        case (.directory, .partial): "It is being listed."
        case (.directory, .dataless): "Its listing is not here: the first who looks lists it."
        case (.file, .materialized): "Its content is here and takes \(ByteText.text(item.inode.localBytes))."
        case (.file, .partial):
            "\(ByteText.text(item.inode.localBytes)) of its content are here; reading the rest downloads it."
        case (.file, .dataless): "Its content is not here: reading downloads it."
        }
    }

    private func eviction(of item: ItemRecord) throws -> [String] {
        guard item.inode.kind == .file else { return [] }
        if item.trash != nil { return ["It stays here as long as it is in the trash."] }
        let isOpen = host.volume.openInodes.isOpen(item.inode.number)
        let refusal: EvictionRefusal? =
            if try host.replica.effectivePolicy(of: item) == .keepDownloaded {
                .nonEvictable
            } else if isOpen {
                .isOpen
            } else if item.inode.linkCount > 1 {
                .isHardLinked
            } else {
                nil
            }
        guard item.inode.localBytes > 0 || isOpen else { return [] }
        guard let refusal else { return ["It can be evicted."] }
        let holders = OpenHolders(mountpoint: host.mountpoint.string, inode: item.inode.number)
        return ["It cannot be evicted now: \(refusal.words(isOpen ? holders.find() : []))."]
    }
}

extension EvictionRefusal {
    /// The reason in words, with who holds the file open where that is it.
    func words(_ holders: [OpenHolders.Holder]) -> String {
        guard self == .isOpen, !holders.isEmpty else { return words }
        return "open in " + holders.map(\.description).joined(separator: ", ")
    }
}
