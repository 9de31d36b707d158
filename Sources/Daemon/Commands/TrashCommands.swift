import Control
import FileProvider
import Replica
import Sync
import Volume

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

    private func put(_ paths: [String]) async throws -> ItemsReport<TrashedItem> {
        try await each(paths, path: PathResolver.withoutSlash) { path, batch in
            let host = try await domains.mountedHost(of: PathResolver.withoutSlash(path))
            // A source that was read-only when it was mounted has a trash once it is not.
            guard host.engine.hasTrash || host.volume.isReadOnly else {
                throw FileProviderError(.featureUnsupported, "the remote has no trash; 'rm' deletes for good")
            }
            let resolver = PathResolver(host: host, lists: true, followsBeforeSlash: false)
            let item = try await resolver.item(at: path)
            batch.noteChange(in: host)
            let trashed = try host.trashItem(withIdentifier: item.localIdentifier)
            return try describe(trashed.itemIdentifier, host, path)
        }
    }

    private func list(_ reference: DomainReference?) async throws -> ItemsReport<TrashedItem> {
        var report = ItemsReport<TrashedItem>()
        try await domains.each(reference) { host in
            report.items += try host.replica.database.trashedItems().map { describe($0, host) }
        }
        return report
    }

    private func restore(_ items: [DomainReference], to directory: String?) async throws -> ItemsReport<TrashedItem> {
        try await each(items, path: \.text) { reference, batch in
            let (host, item) = try await find(reference)
            batch.noteChange(in: host)
            var parent: ItemIdentifier?
            if let directory {
                guard try await domains.mountedHost(of: directory) === host else {
                    throw ControlError(.failed, "not in the same domain as '\(reference.text)'", path: directory)
                }
                let item = try await PathResolver(host: host, lists: true, followsLast: true).item(at: directory)
                guard item.inode.kind == .directory else {
                    throw ControlError(.failed, "not a directory", path: directory)
                }
                parent = item.localIdentifier
            }
            let restored = try host.untrashItem(
                withIdentifier: item.localIdentifier, toParentItemIdentifier: parent)
            return try describe(restored.itemIdentifier, host, reference.text)
        }
    }

    private func empty(_ reference: DomainReference) async throws -> ItemsReport<TrashedItem> {
        let host = try await domains.host(reference)
        let items = try host.replica.database.trashedItems().map { (item: $0, shown: describe($0, host)) }
        return try await each(items, path: \.shown.path) { trashed, batch in
            let (item, shown) = trashed
            batch.noteChange(in: host)
            do throws(FileProviderError) {
                try await host.deleteItem(withIdentifier: item.localIdentifier)
            } catch {
                // The item was deleted concurrently.
                guard error.code == .noSuchItem else { throw error }
            }
            return shown
        }
    }

    /// Runs `body` for each request, and collects the items in their new state and the failures.
    private func each<Item>(
        _ requests: [Item], path: (Item) -> String, _ body: (Item, inout ItemBatch) async throws -> TrashedItem
    ) async throws -> ItemsReport<TrashedItem> {
        var report = ItemsReport<TrashedItem>()
        report.refusals = try await ItemBatch.run(requests, path: path) { request, batch in
            report.items.append(try await body(request, &batch))
        }
        return report
    }

    /// The item at a path in the trash, with a name in the trash of any mounted domain, or with an original path.
    private func find(_ reference: DomainReference) async throws -> (DomainHost, ItemRecord) {
        let absent = ControlError(.failed, "not in the trash; 'yonder trash list' shows it", path: reference.text)
        if let host = await domains.host(containing: reference.path),
            let item = try? await PathResolver(host: host).item(at: reference.path), item.trash != nil
        {
            return (host, item)
        }
        // A name may also be that of a file in the working directory.
        var found: [(DomainHost, ItemRecord)] = []
        try await domains.each(nil) { host in
            found += try host.replica.database.trashedItems(named: reference.text).map { (host, $0) }
        }
        if found.isEmpty, let host = await domains.host(containing: reference.path) {
            let resolver = PathResolver(host: host)
            for item in try host.replica.database.trashedItems() {
                guard let place = item.trash,
                    resolver.originalPath(of: place).utf8.elementsEqual(reference.path.utf8)
                else { continue }
                found.append((host, item))
            }
        }
        guard let first = found.first else { throw absent }
        guard found.count == 1 else {
            let paths = found.map { host, item in "'\(describe(item, host).path)'" }
            let rest = paths.count - Self.mostPaths
            throw ControlError(
                .failed,
                "several items of the trash match; give the path of one: "
                    + paths.prefix(Self.mostPaths).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : ""),
                path: reference.text)
        }
        return first
    }

    /// How many paths an error names.
    private static let mostPaths = 5

    private func describe(_ identifier: ItemIdentifier, _ host: DomainHost, _ path: String) throws -> TrashedItem {
        guard let item = try host.replica.database.known(identifier) else {
            throw PathResolver.noSuchItem(at: path)
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
        return (directory ?? mountpoint) + "/" + place.name
    }
}
