import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// File systems that are mounted on another directory of the folder than before: their items are moved and not away.
extension FolderMounts {
    /// The parent in the record of a file system that is known to be on another directory, and was not seen there yet. No directory has
    /// that identifier.
    private static let noParent = ""

    /// File systems that are not asked where they are mounted: one whose server or program is gone may never answer.
    private static func mayNotAnswer(_ type: String) -> Bool {
        type.starts(with: "fuse") || ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "autofs"].contains(type)
    }

    /// The names from the root down to the directory of a file system; nil if the system does not know it.
    func names(to record: Record) -> [String]? {
        manager.remotePath(of: ItemIdentifier(record.parent)).map { $0 + [record.name] }
    }

    /// The path of a name in the folder; nil if the system does not know its directory.
    func path(to place: Place) -> FilePath? {
        guard let name = place.name, let names = manager.remotePath(of: place.directory) else { return nil }
        return (names + [name]).reduce(root) { $0.appending($1) }
    }

    /// The names from the root down to the directories where the file system of an item was seen, or is.
    func names(toMountOf identifier: ItemIdentifier) -> [[String]] {
        if isWithoutRecords { return [] }
        let file = identifier.rawValue.prefix { $0 != "+" }
        let records = state.withLock { Array($0.records.values) }
        return records.filter { file.hasSuffix("@" + $0.mark) }.compactMap { present($0) ?? names(to: $0) }
    }

    /// The names from the root down to another directory than that of a record on which its file system is mounted now.
    func present(_ record: Record) -> [String]? {
        guard record.isMount, record.identity.isLasting, let table = try? MountTable() else { return nil }
        let before = names(to: record)
        return table.mounts.lazy.compactMap { mount -> [String]? in
            guard let names = self.names(to: mount), names != before, !Self.mayNotAnswer(mount.type),
                let directory = try? FileDescriptor.openDirectory(notFollowing: mount.filePath)
            else { return nil }
            defer { try? directory.close() }
            guard let found = try? SourceIdentity(of: directory), record.identity.isProvenSame(as: found) == true,
                !self.isTaken(names, from: found)
            else { return nil }
            return names
        }.first
    }

    /// The names from the root down to the directory of a mount; nil if it is not below the folder.
    private func names(to mount: MountTable.Mount) -> [String]? {
        let root = FileNameText.bytes(of: root.fileNameText) + [UInt8(ascii: "/")]
        guard mount.path.starts(with: root) else { return nil }
        return mount.path.dropFirst(root.count).split(separator: UInt8(ascii: "/")).map {
            FileNameText.text(of: Array($0))
        }
    }

    /// Whether a directory is kept for another file system, which is away.
    private func isTaken(_ names: [String], from found: SourceIdentity) -> Bool {
        let records = state.withLock { Array($0.records.values) }
        return records.contains { record in
            self.names(to: record) == names && record.isMount && record.identity.isProvenSame(as: found) != true
                && isKnown(record)
        }
    }

    /// The record of a file system that was on another directory before, and is not there any more.
    func moved(to found: Record) -> Record? {
        let records = state.withLock { Array($0.records.values) }
        return records.first { record in
            record.place != found.place && record.isMount && found.isMount
                && record.identity.isProvenSame(as: found.identity) == true
                && !isMounted(record, as: found.identity.device)
        }
    }

    /// Keeps what is known of a file system until it is seen on its present directory, and gives its former one up.
    func setAside(_ record: Record) throws {
        var kept = record
        (kept.parent, kept.name) = (Self.noParent, record.mark)
        try manager.store.put(kept, at: kept.key, in: Record.namespace, durability: .synced)
        try forget(record)
        state.withLock { [kept] state in state.records[kept.place] = kept }
    }
}
