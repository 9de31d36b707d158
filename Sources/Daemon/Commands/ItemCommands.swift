import Control
import FileProvider
import Foundation
import Replica
import Sync
import Syscalls
import SystemPackage

/// Executes the commands that change items, by the actions of `DomainHost`.
struct ItemCommands: Sendable {
    let domains: Domains

    func perform(_ command: ItemsCommand) async throws -> ItemsReport<ItemInformation> {
        switch command {
        case .createDirectories(let paths):
            return try await each(paths) { path in
                let (directory, name) = try Self.split(path)
                let top = try await domains.mountedHost(of: path)
                if top.place.fileNameText.utf8.elementsEqual(path.utf8) { throw FileProviderError.posix(.fileExists) }
                let (host, parent) = try await findDirectory(directory)
                let made = try host.createDirectory(withName: name, inParentItemIdentifier: parent)
                return (host, made.itemIdentifier)
            }
        case .rename(let path, let name):
            return try await each([path]) { path in
                let (host, item) = try await find(path, followsBeforeSlash: false)
                let renamed = try host.renameItem(withIdentifier: item.localIdentifier, toName: name)
                return (host, renamed.itemIdentifier)
            }
        case .move(let paths, let directory):
            return try await each(paths) { path in
                let (host, item) = try await find(path, followsBeforeSlash: false)
                let (other, parent) = try await findDirectory(directory)
                guard other === host else {
                    throw ControlError(.failed, "not in the same domain as '\(path)'", path: directory)
                }
                let moved = try await host.reparentItem(
                    withIdentifier: item.localIdentifier, toParentItemWithIdentifier: parent)
                return (host, moved.itemIdentifier)
            }
        case .importDocuments(let files, let directory):
            return try await each(files) { file in
                let (host, parent) = try await findDirectory(directory)
                let imported = try await BlockingWork.run {
                    try host.importDocument(at: FilePath(fileNamed: file), toParentItemIdentifier: parent)
                }
                return (host, imported.itemIdentifier)
            }
        case .delete(let paths):
            return try await each(paths) { path in
                let (host, item) = try await find(path, followsBeforeSlash: false)
                try await host.deleteItem(withIdentifier: item.localIdentifier)
                return (host, nil)
            }
        case .setFavoriteRank(let paths, let rank):
            return try await each(paths) { path in
                let (host, item) = try await find(path)
                _ = try host.setFavoriteRank(rank, forItemIdentifier: item.localIdentifier)
                return (host, item.localIdentifier)
            }
        case .setLastUsedDate(let paths, let seconds, let nanoseconds):
            let date = FileTimestamp(seconds: seconds, nanoseconds: nanoseconds)
            return try await each(paths) { path in
                let (host, item) = try await find(path)
                _ = try host.setLastUsedDate(date, forItemIdentifier: item.localIdentifier)
                return (host, item.localIdentifier)
            }
        case .setTagData(let paths, let data):
            return try await each(paths) { path in
                let (host, item) = try await find(path)
                _ = try host.setTagData(data.map { [UInt8]($0) }, forItemIdentifier: item.localIdentifier)
                return (host, item.localIdentifier)
            }
        case .upload(let paths, let fields):
            return try await upload(paths, fields)
        }
    }

    private func upload(_ paths: [String], _ names: [String]) async throws -> ItemsReport<ItemInformation> {
        var fields: ItemFields = []
        for name in names {
            guard let field = ItemFields(name: name) else {
                throw ControlError(
                    .usage, "no such field; the fields are \(ItemFields.allNames.joined(separator: ", "))", path: name)
            }
            fields.formUnion(field)
        }
        return try await each(paths) { [fields] path in
            let (host, item) = try await find(path)
            if !fields.isEmpty { try host.requestModification(of: fields, forItemWithIdentifier: item.localIdentifier) }
            guard !item.isExcluded else {
                throw FileProviderError(.excludedFromSync, "it stays on this machine and is never uploaded")
            }
            try await host.engine.send(item.inode.number)
            return (host, item.localIdentifier)
        }
    }

    /// Runs `body` for each path, and collects the items in their new state and the failures.
    private func each(
        _ paths: [String], _ body: (String) async throws -> (DomainHost, ItemIdentifier?)
    ) async throws -> ItemsReport<ItemInformation> {
        var report = ItemsReport<ItemInformation>()
        report.refusals = try await ItemBatch.run(paths, path: PathResolver.withoutSlash) { path, batch in
            let (host, identifier) = try await body(path)
            batch.noteChange(in: host)
            guard let identifier, let item = try host.replica.database.known(identifier) else { return }
            let place = PathResolver(host: host).path(of: item) ?? path
            report.items.append(try await ItemReporter(host: host).information(on: item, path: place))
        }
        return report
    }

    /// The item at a path. Only directories that the database does not know are listed, so that known paths work
    /// offline.
    private func find(
        _ path: String, followsLast: Bool = false, followsBeforeSlash: Bool = true
    ) async throws -> (DomainHost, ItemRecord) {
        let host = try await domains.mountedHost(of: PathResolver.withoutSlash(path))
        var resolver = PathResolver(host: host, followsLast: followsLast, followsBeforeSlash: followsBeforeSlash)
        do {
            return (host, try await resolver.item(at: path))
        } catch is ControlError {
            resolver.lists = true
            return (host, try await resolver.item(at: path))
        }
    }

    private func findDirectory(_ path: String) async throws -> (DomainHost, ItemIdentifier) {
        let (host, item) = try await find(path, followsLast: true)
        guard item.inode.kind == .directory else { throw ControlError(.failed, "not a directory", path: path) }
        return (host, item.localIdentifier)
    }

    private static func split(_ path: String) throws -> (directory: String, name: String) {
        let path = FilePath(path)
        return (path.removingLastComponent().string, path.lastComponent?.string ?? "")
    }
}
