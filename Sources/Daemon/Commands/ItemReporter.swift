import Control
import FileProvider
import Replica
import Sync
import Volume

/// Describes a domain's items to the control socket.
struct ItemReporter: Sendable {
    let host: DomainHost

    /// What is known of an item, under the path it was asked for by.
    ///
    /// - Throws: `failed` for an inode without a name; what the database says.
    func information(on number: InodeNumber, path: String) async throws -> ItemInformation {
        guard let item = try host.replica.database.item(ofInode: number) else {
            throw ControlError(.failed, "no such item", path: path)
        }
        return try await information(on: item, path: path)
    }

    func information(on item: ItemRecord, path: String) async throws -> ItemInformation {
        let inode = item.inode
        let state = try host.replica.database.pendingItem(item.id)?.state
        var sync = try host.replica.database.syncState(of: item)
        if await host.engine.isUploading(item) { sync = .uploading }
        let failure = try host.replica.database.failure(of: inode.number)
        return ItemInformation(
            path: path, inode: inode.number.rawValue, identifier: item.identifier?.rawValue, kind: inode.kind.word,
            size: inode.size,
            modified: Timestamp.text(
                seconds: inode.modifiedAt.seconds, nanoseconds: inode.modifiedAt.nanoseconds),
            content: inode.content.name, localBytes: inode.localBytes, sync: sync.rawValue,
            pendingFields: item.changedFields.names, policy: item.policy.name,
            effectivePolicy: try host.replica.effectivePolicy(of: item).name,
            contentVersion: item.base.version.contentVersion.printable,
            metadataVersion: item.base.version.metadataVersion.printable, isTrashed: item.trash != nil,
            trashParent: item.trash?.parent?.rawValue,
            error: failure.map {
                ItemInformation.Failure(
                    code: $0.code, message: $0.message, attempts: $0.attempts,
                    nextTry: state?.nextTry.map(Timestamp.text))
            })
    }

    /// A directory's items, with all below them when asked; of anything else itself.
    func listing(of inode: InodeRecord, path: String, isRecursive: Bool) async throws -> [ItemInformation] {
        guard inode.kind == .directory else { return [try await information(on: inode.number, path: path)] }
        var listing: [ItemInformation] = []
        var waiting: [(inode: InodeRecord, path: String)] = [(inode, path)]
        while let (directory, path) = waiting.popLast() {
            try Task.checkCancellation()
            // Of a directory whose listing is not here no more is known than what may be old news.
            guard directory.content != .dataless else { continue }
            var below: [(inode: InodeRecord, path: String)] = []
            for item in try host.replica.database.items(in: directory.number) where !item.isHidden {
                let itemPath = path + "/" + item.name
                listing.append(try await information(on: item, path: itemPath))
                if isRecursive, item.inode.kind == .directory { below.append((item.inode, itemPath)) }
            }
            waiting += below.reversed()
        }
        return listing
    }
}

extension InodeKind {
    /// The word for it in messages.
    var word: String {
        switch self {
        case .file: "file"
        case .directory: "directory"
        case .symbolicLink: "symlink"
        case .fifo: "fifo"
        case .characterDevice: "characterDevice"
        case .blockDevice: "blockDevice"
        case .socket: "socket"
        }
    }
}
