import Control
import FileProvider
import Replica
import Sync
import Volume

/// Describes a domain's items to the control socket.
struct ItemReporter: Sendable {
    let host: DomainHost

    func information(on item: ItemRecord, path: String) async throws -> ItemInformation {
        let inode = item.inode
        let sync = try host.engine.syncState(of: item)
        let failure = try host.replica.database.failure(of: inode.number)
        let nextTry = failure == nil ? nil : try await timeOfNextTry(of: item)
        let marks = try host.replica.database.marks(of: item)
        let ownership = host.options.ownership
        return ItemInformation(
            path: path, inode: inode.number.rawValue, identifier: item.identifier?.rawValue, kind: inode.kind.word,
            size: inode.size,
            modified: Timestamp.text(inode.modifiedAt),
            content: inode.shownContent.name, localBytes: inode.localBytes, sync: sync.rawValue,
            pendingFields: item.changedFields.names, policy: item.policy.name,
            effectivePolicy: try host.replica.effectivePolicy(of: item).name,
            contentVersion: item.base.version.contentVersion.printable,
            metadataVersion: item.base.version.metadataVersion.printable, isTrashed: item.trash != nil,
            trashParent: item.trash?.parent?.rawValue,
            error: failure.map { ItemInformation.Failure($0, nextTry: nextTry) },
            favoriteRank: marks.favoriteRank, tagData: marks.tagData,
            lastUsed: inode.accessedAt.map(Timestamp.text),
            mode: (inode.permissions ?? ownership.permissions(of: inode.kind)).padded(to: 4, radix: 8),
            uid: inode.owner ?? ownership.user, gid: inode.group ?? ownership.group)
    }

    /// When what failed is tried again: sending the item, offering it to the provider, or downloading it; nil if that is not
    /// known.
    private func timeOfNextTry(of item: ItemRecord) async throws -> FileTimestamp? {
        if host.engine.isUploading(item) { return nil }
        if let time = try host.replica.database.nextTry(ofItem: item.id) { return time }
        return await host.engine.nextDownload(of: item.inode.number).map { FileTimestamp.now.advanced(by: $0) }
    }

    /// Reports the items of a directory in parts by the bytes of their names, recursively if requested. For any other item, reports the item
    /// itself.
    func list(
        _ item: ItemRecord, path: String, isRecursive: Bool, _ give: ([ItemInformation]) async throws -> Void
    ) async throws {
        guard item.inode.kind == .directory else { return try await give([information(on: item, path: path)]) }
        var waiting: [(inode: InodeRecord, path: String)] = [(item.inode, path)]
        while let (directory, path) = waiting.popLast() {
            // The rows of a dataless directory may be outdated.
            guard directory.content != .dataless else { continue }
            var below: [(inode: InodeRecord, path: String)] = []
            var last = ""
            while true {
                try Task.checkCancellation()
                let items = try host.replica.database.items(in: directory.number, after: last, limit: Self.partSize)
                guard let end = items.last else { break }
                last = end.name
                var part: [ItemInformation] = []
                for item in items where !item.isHidden {
                    let itemPath = path + "/" + item.name
                    part.append(try await information(on: item, path: itemPath))
                    if isRecursive, item.inode.kind == .directory { below.append((item.inode, itemPath)) }
                }
                try await give(part)
            }
            waiting += below.reversed()
        }
    }

    private static let partSize = 1000
}

extension ItemInformation.Failure {
    init(_ failure: ItemFailure, attempts: Int? = nil, nextTry: FileTimestamp?) {
        self.init(
            code: failure.code, message: failure.message, attempts: attempts ?? failure.attempts,
            nextTry: nextTry.map(Timestamp.text))
    }
}

extension InodeKind {
    /// The kind in messages.
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
