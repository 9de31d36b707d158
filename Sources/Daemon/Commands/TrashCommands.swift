import Control
import FileProvider
import Replica
import Sync
import SystemPackage

/// Executes the commands about the trash.
struct TrashCommands: Sendable {
    let domains: Domains

    func perform(_ command: TrashCommand) async throws -> ControlResult {
        switch command {
        case .put(let paths): .trash(try await put(paths))
        case .list(let reference): .trash(try await list(reference))
        case .restore(let items, let directory): .trash(try await restore(items, to: directory))
        case .empty(let reference): .trash(try await empty(reference))
        }
    }

    private func put(_ paths: [String]) async throws -> TrashReport {
        try await each(paths, path: { $0 }) { path, changed in
            let host = try await host(containing: path)
            guard host.engine.hasTrash else {
                throw FileProviderError(.featureUnsupported, "the remote has no trash; 'rm' deletes for good")
            }
            let inode = try await PathResolver(host: host, lists: true).inode(at: path)
            changed.insert(host)
            let item = try host.trashItem(withIdentifier: identifier(of: inode, host, path))
            return try trashed(item.itemIdentifier, host, path)
        }
    }

    private func list(_ reference: DomainReference?) async throws -> TrashReport {
        var report = TrashReport()
        for host in try await domains.hosts(reference) {
            report.items += try host.replica.database.trashedItems().map { describe($0, host) }
        }
        return report
    }

    private func restore(_ items: [DomainReference], to directory: String?) async throws -> TrashReport {
        try await each(items, path: \.text) { reference, changed in
            let (host, item) = try await find(reference)
            changed.insert(host)
            var parent: ItemIdentifier?
            if let directory {
                guard try await self.host(containing: directory) === host else {
                    throw ControlError(.failed, "not in the same domain", path: directory)
                }
                let inode = try await PathResolver(host: host, lists: true).inode(at: directory)
                guard inode.kind == .directory else { throw ControlError(.failed, "not a directory", path: directory) }
                parent = try identifier(of: inode, host, directory)
            }
            let restored = try host.untrashItem(
                withIdentifier: item.identifier ?? item.placeholder, toParentItemIdentifier: parent)
            return try trashed(restored.itemIdentifier, host, reference.text)
        }
    }

    private func empty(_ reference: DomainReference) async throws -> TrashReport {
        let host = try await domains.host(reference)
        let items = try host.replica.database.trashedItems().map { (item: $0, shown: describe($0, host)) }
        return try await each(items, path: \.shown.path) { trashed, changed in
            let (item, shown) = trashed
            changed.insert(host)
            do throws(FileProviderError) {
                try await host.deleteItem(withIdentifier: item.identifier ?? item.placeholder)
            } catch {
                // The item was deleted concurrently.
                guard error.code == .noSuchItem else { throw error }
            }
            return shown
        }
    }

    // MARK: - Private

    /// Runs `body` for each request and collects failures. Returns when the mount shows the changes.
    private func each<Item>(
        _ requests: [Item], path: (Item) -> String, _ body: (Item, inout ChangedDomains) async throws -> TrashedItem
    ) async throws -> TrashReport {
        var report = TrashReport()
        var changed = ChangedDomains()
        for request in requests {
            do {
                report.items.append(try await body(request, &changed))
            } catch let error as ControlError {
                guard requests.count > 1 || error.code != .unavailable else { throw error }
                report.refusals.append(
                    Refusal(path: path(request), code: error.code.rawValue, reason: error.message))
            } catch let error as FileProviderError {
                try Task.checkCancellation()
                report.refusals.append(
                    Refusal(path: path(request), code: error.code.rawValue, reason: error.message))
            }
        }
        await changed.tellKernel()
        return report
    }

    private func host(containing path: String) async throws -> DomainHost {
        guard let host = await domains.host(containing: path) else {
            throw ControlError(.unavailable, "not in a mounted domain", path: path)
        }
        return host
    }

    private func identifier(of inode: InodeRecord, _ host: DomainHost, _ path: String) throws -> ItemIdentifier {
        guard let item = try host.replica.database.item(ofInode: inode.number) else {
            throw ControlError(.failed, "no such item", path: path)
        }
        return item.identifier ?? item.placeholder
    }

    /// The item at a path in the trash, or with a name in the trash of any mounted domain.
    private func find(_ reference: DomainReference) async throws -> (DomainHost, ItemRecord) {
        if let host = await domains.host(containing: reference.path),
            let inode = try? await PathResolver(host: host).inode(at: reference.path)
        {
            guard let item = try host.replica.database.item(ofInode: inode.number), item.trash != nil else {
                throw ControlError(.failed, "not in the trash", path: reference.text)
            }
            return (host, item)
        }
        var found: [(DomainHost, ItemRecord)] = []
        for host in await domains.mounted {
            for item in try host.replica.database.trashedItems()
            where item.name.utf8.elementsEqual(reference.text.utf8) {
                found.append((host, item))
            }
        }
        guard let first = found.first else { throw ControlError(.failed, "not in the trash", path: reference.text) }
        guard found.count == 1 else {
            throw ControlError(.failed, "in several trashes: say which by its path", path: reference.text)
        }
        return first
    }

    private func trashed(_ identifier: ItemIdentifier, _ host: DomainHost, _ path: String) throws -> TrashedItem {
        guard let item = try host.replica.database.known(identifier) else {
            throw ControlError(.failed, "no such item", path: path)
        }
        return describe(item, host)
    }

    private func describe(_ item: ItemRecord, _ host: DomainHost) -> TrashedItem {
        let resolver = PathResolver(host: host)
        let path = resolver.path(of: item) ?? item.name
        return TrashedItem(
            path: path, name: item.ownName,
            originalPath: item.trash.map { resolver.originalPath(of: $0) } ?? path,
            inode: item.inode.number.rawValue, identifier: item.identifier?.rawValue,
            trashParent: item.trash?.parent?.rawValue, kind: item.inode.kind.word, size: item.inode.size,
            trashed: item.trash.map { Timestamp.text($0.date) })
    }
}

extension PathResolver {
    /// The original path of a trashed item, as far as its directories still exist.
    func originalPath(of place: TrashPlace) -> String {
        let directory = place.ancestors.lazy.compactMap { path(of: $0) }.first
        return (directory ?? host.mountpoint.string) + "/" + place.name
    }
}
