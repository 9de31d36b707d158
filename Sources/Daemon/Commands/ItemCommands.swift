import Control
import Dispatch
import FileProvider
import Foundation
import Replica
import Sync
import SystemPackage

/// Executes the commands that change items, by the actions of `DomainHost`.
struct ItemCommands: Sendable {
    let domains: Domains

    func perform(_ command: ItemsCommand) async throws -> ItemsReport {
        switch command {
        case .createDirectories(let paths):
            return try await each(paths) { path in
                let (directory, name) = try Self.split(path)
                let (host, parent, _) = try await find(directory)
                let made = try host.createDirectory(withName: name, inParentItemIdentifier: parent)
                return (host, try number(of: made, host))
            }
        case .rename(let path, let name):
            return try await each([path]) { path in
                let (host, identifier, number) = try await find(path)
                _ = try host.renameItem(withIdentifier: identifier, toName: name)
                return (host, number)
            }
        case .move(let paths, let directory):
            return try await each(paths) { path in
                let (host, identifier, number) = try await find(path)
                let parent = try await findDirectory(directory, in: host)
                _ = try host.reparentItem(withIdentifier: identifier, toParentItemWithIdentifier: parent)
                return (host, number)
            }
        case .importDocuments(let files, let directory):
            return try await each(files) { file in
                let (host, parent, _) = try await find(directory)
                return (host, try number(of: try await importDocument(file, to: parent, of: host), host))
            }
        case .delete(let paths):
            return try await each(paths) { path in
                let (host, identifier, _) = try await find(path)
                try await host.deleteItem(withIdentifier: identifier)
                return (host, nil)
            }
        case .setFavoriteRank(let paths, let rank):
            return try await each(paths) { path in
                let (host, identifier, number) = try await find(path)
                _ = try host.setFavoriteRank(rank, forItemIdentifier: identifier)
                return (host, number)
            }
        case .setLastUsedDate(let paths, let seconds, let nanoseconds):
            let date = FileTimestamp(seconds: seconds, nanoseconds: nanoseconds)
            return try await each(paths) { path in
                let (host, identifier, number) = try await find(path)
                _ = try host.setLastUsedDate(date, forItemIdentifier: identifier)
                return (host, number)
            }
        case .setTagData(let paths, let data):
            return try await each(paths) { path in
                let (host, identifier, number) = try await find(path)
                _ = try host.setTagData(data.map { [UInt8]($0) }, forItemIdentifier: identifier)
                return (host, number)
            }
        case .upload(let paths, let fields):
            return try await upload(paths, fields)
        }
    }

    private func upload(_ paths: [String], _ names: [String]) async throws -> ItemsReport {
        var fields: ItemFields = []
        for name in names {
            guard let field = ItemFields(name: name) else {
                throw ControlError(
                    .usage, "no such field; there are \(ItemFields.allNames.joined(separator: ", "))", path: name)
            }
            fields.formUnion(field)
        }
        return try await each(paths) { [fields] path in
            let (host, identifier, number) = try await find(path)
            if !fields.isEmpty { try host.requestModification(of: fields, forItemWithIdentifier: identifier) }
            guard let item = try host.replica.database.item(ofInode: number) else {
                throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
            }
            guard !item.isExcluded else {
                throw FileProviderError(.excludedFromSync, "it stays on this machine and is never uploaded")
            }
            try await host.engine.send(number)
            return (host, number)
        }
    }

    /// Copies a file on a Dispatch thread, because it may block for long.
    private func importDocument(
        _ file: String, to parent: ItemIdentifier, of host: DomainHost
    ) async throws -> FileProviderItem {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result { try host.importDocument(at: FilePath(file), toParentItemIdentifier: parent) })
            }
        }
    }

    // MARK: - Private

    /// Runs `body` for each path and collects failures. Returns when the mount shows the changes.
    private func each(
        _ paths: [String], _ body: (String) async throws -> (DomainHost, InodeNumber?)
    ) async throws -> ItemsReport {
        var report = ItemsReport()
        var changed = ChangedDomains()
        for path in paths {
            do {
                let (host, number) = try await body(path)
                changed.insert(host)
                guard let number, let record = try host.replica.database.item(ofInode: number) else { continue }
                let place = PathResolver(host: host).path(of: record) ?? path
                report.items.append(try await ItemReporter(host: host).information(on: record, path: place))
            } catch let error as ControlError {
                guard paths.count > 1, error.code != .usage else { throw error }
                report.refusals.append(Refusal(path: path, code: error.code.rawValue, reason: error.message))
            } catch let error as FileProviderError {
                try Task.checkCancellation()
                report.refusals.append(Refusal(path: path, code: error.code.rawValue, reason: error.message))
            }
        }
        await changed.tellKernel()
        return report
    }

    /// The item at a path. Only directories that the database does not know are listed, so that known paths work
    /// offline.
    private func find(_ path: String) async throws -> (DomainHost, ItemIdentifier, InodeNumber) {
        guard let host = await domains.host(containing: path) else {
            throw ControlError(.unavailable, "not in a mounted domain", path: path)
        }
        var inode: InodeRecord?
        do {
            inode = try await PathResolver(host: host).inode(at: path)
        } catch is ControlError {
            inode = nil
        }
        let found: InodeRecord
        if let inode {
            found = inode
        } else {
            found = try await PathResolver(host: host, lists: true).inode(at: path)
        }
        guard let item = try host.replica.database.item(ofInode: found.number) else {
            throw ControlError(.failed, "no such item", path: path)
        }
        return (host, item.identifier ?? item.placeholder, found.number)
    }

    /// The inode of a new item.
    private func number(of item: FileProviderItem, _ host: DomainHost) throws -> InodeNumber? {
        try host.replica.database.known(item.itemIdentifier)?.inode.number
    }

    private func findDirectory(_ path: String, in host: DomainHost) async throws -> ItemIdentifier {
        let (other, identifier, _) = try await find(path)
        guard other === host else { throw ControlError(.failed, "not in the same domain", path: path) }
        return identifier
    }

    private static func split(_ path: String) throws -> (directory: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash != path.utf8.startIndex else {
            throw ControlError(.unavailable, "not in a mounted domain", path: path)
        }
        return (String(path[..<slash]), String(path[path.utf8.index(after: slash)...]))
    }
}
