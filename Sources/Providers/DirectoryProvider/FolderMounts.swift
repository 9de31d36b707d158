import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// The file systems below the folder, such as a disk that is mounted on one of its directories. They are stored with the domain: where
/// one is not mounted, the directory that is there in its place is not it, and its files are away and not deleted.
final class FolderMounts: Sendable {
    typealias Place = ChangeLog.Place

    /// A file system below the folder.
    struct Record: Codable, Sendable {
        var parent: String
        var name: String
        /// Of its topmost directory.
        var identity: SourceIdentity
        /// See ``mark(of:)``.
        var mark: String
        /// Whether its topmost directory was the root of a mount. A subvolume of btrfs has a device of its own and is not one.
        var isMount: Bool

        static let namespace = ProviderStoreNamespace<Record>("folder.mounts")
        var key: ProviderStoreKey { ProviderStoreKey(parent + "/" + name) }
        var place: Place { Place(name, in: ItemIdentifier(parent)) }
    }

    /// A directory whose file system is away.
    struct AwayDirectory: Sendable {
        var identifier: ItemIdentifier
        var parent: ItemIdentifier
        var name: String
    }

    private struct State {
        var records: [Place: Record] = [:]
        /// The records whose device is that of the file system since this start.
        var isSeen: Set<Place> = []
        var marks: [UInt64: String] = [:]
        /// Why the files of a file system cannot be used.
        var defects: [Place: FileProviderError] = [:]
    }

    private let manager: any FileProviderManager
    private let state: Mutex<State>
    private let isEmpty: Atomic<Bool>

    /// - Throws: the errors of the store.
    init(manager: any FileProviderManager) throws {
        self.manager = manager
        var stored = State()
        for (_, record) in try manager.store.list(in: Record.namespace, onUnreadable: { manager.report("\($0)") }) {
            stored.records[record.place] = record
        }
        isEmpty = Atomic(stored.records.isEmpty)
        state = Mutex(stored)
    }

    /// What marks the files of a file system in their identifiers: the number of its device when it was first seen, also after it was
    /// mounted again and has another number.
    func mark(of device: UInt64) -> String {
        state.withLock { $0.marks[device] } ?? String(device, radix: 16)
    }

    /// Whether a file system of its own is, or was, at a name.
    func isToBeExamined(
        _ status: FileStatus, at place: @autoclosure () -> Place, rootDevice: @autoclosure () -> UInt64
    ) -> Bool {
        if status.kind == .directory {
            if status.isMountRoot { return true }
            if status.device != rootDevice(), state.withLock({ $0.marks[status.device] == nil }) { return true }
        }
        return isKnown(place())
    }

    private func isKnown(_ place: @autoclosure () -> Place) -> Bool {
        if isEmpty.load(ordering: .relaxed) { return false }
        let place = place()
        return state.withLock { $0.records[place] != nil }
    }

    /// Compares the directory at a name with the file system that was seen there.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if it is away; POSIX errors.
    func examine(_ directory: FileDescriptor, _ status: FileStatus, at place: Place, rootDevice: UInt64) throws {
        let (known, isSeen) = state.withLock { ($0.records[place], $0.isSeen.contains(place)) }
        // Without a birth time the same numbers may be those of another file system.
        if let known, isSeen, status.birth != nil, known.identity.isSameFile(as: status) { return }
        let found = try SourceIdentity(of: directory)
        let isTop = status.isMountRoot || status.device != rootDevice
        if var record = known {
            if record.identity.isSameDirectory(as: found) {
                let isMoved = record.identity != found || record.isMount != status.isMountRoot
                if isSeen, !isMoved { return }
                (record.identity, record.isMount) = (found, status.isMountRoot)
                return try keep(record, isStored: !isMoved)
            }
            // Of some, as those of FUSE, nothing says that they are the same: their files are new ones at each mount.
            let isKnownAnew = status.isMountRoot && !found.isLasting && !record.identity.isLasting
            if record.isMount, !isKnownAnew, isAnythingKnown(of: record) { throw Self.isAway(place) }
            if !isTop { return try forget(record) }
        }
        try keep(
            Record(
                parent: place.directory.rawValue, name: place.name ?? "", identity: found,
                mark: newMark(for: found, at: place), isMount: status.isMountRoot),
            isStored: false)
    }

    /// The mark of a file system that is seen at a place for the first time: that which it has at another place (a bind mount), else the
    /// number of its device, and more if another file system had that number before.
    private func newMark(for found: SourceIdentity, at place: Place) -> String {
        let others = state.withLock { $0.records.values.filter { $0.place != place } }
        let twin = others.first { $0.identity.device == found.device && $0.identity.fileSystem == found.fileSystem }
        if let twin { return twin.mark }
        let taken = Set(others.map(\.mark))
        let number = String(found.device, radix: 16)
        var mark = number
        var count = 0
        while taken.contains(mark) {
            count += 1
            mark = number + "@" + String(count, radix: 16)
        }
        return mark
    }

    /// - Throws: `ubiquitousFileUnavailable` if the file system that was found at a name is none that can be a part of the folder.
    func checkUse(of place: @autoclosure () -> Place) throws(FileProviderError) {
        if isEmpty.load(ordering: .relaxed) { return }
        let place = place()
        if let defect = state.withLock({ $0.defects[place] }) { throw defect }
    }

    /// There is no directory at a name.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if a file system was there.
    func examineMissing(_ place: @autoclosure () -> Place) throws {
        if isEmpty.load(ordering: .relaxed) { return }
        let place = place()
        guard let record = state.withLock({ $0.records[place] }) else { return }
        if record.isMount, isAnythingKnown(of: record) { throw Self.isAway(place) }
        try forget(record)
    }

    /// The directory at a name, if its file system is away and the system knows it.
    func away(_ name: String, in parent: ItemIdentifier) -> AwayDirectory? {
        guard isKnown(Place(name, in: parent)),
            let identifier = manager.identifier(ofChildNamed: name, in: parent)
        else { return nil }
        return AwayDirectory(identifier: identifier, parent: parent, name: name)
    }

    /// The names in a directory at which file systems were seen.
    func names(in parent: ItemIdentifier) -> [String] {
        if isEmpty.load(ordering: .relaxed) { return [] }
        return state.withLock { $0.records.keys.filter { $0.directory == parent }.compactMap(\.name) }
    }

    private static func isAway(_ place: Place) -> FileProviderError {
        FileProviderError(
            .ubiquitousFileUnavailable,
            "the file system that was mounted on '\(place.name ?? "/")' in the source is not there: mount it again, or accept what is "
                + "there now by 'yonder reimport' of the mount",
            errno: .operationNotSupportedByDevice)
    }

    /// Whether the system knows anything that is in a file system.
    private func isAnythingKnown(of record: Record) -> Bool {
        guard let identifier = manager.identifier(ofChildNamed: record.name, in: ItemIdentifier(record.parent)) else {
            return false
        }
        var isKnown = false
        manager.visitKnownItems(in: identifier) { _ in
            isKnown = true
            return false
        }
        return isKnown
    }

    private func keep(_ record: Record, isStored: Bool) throws {
        if !isStored {
            try manager.store.put(record, at: record.key, in: Record.namespace, durability: .synced)
        }
        let defect = FolderFileSystem.defect(of: record.identity.device, named: record.name)
        state.withLock { state in
            state.defects[record.place] = defect
            state.records[record.place] = record
            state.isSeen.insert(record.place)
            state.marks[record.identity.device] = record.mark
        }
        isEmpty.store(false, ordering: .relaxed)
    }

    private func forget(_ record: Record) throws {
        try manager.store.remove(record.key, in: Record.namespace)
        state.withLock { state in
            state.records[record.place] = nil
            state.defects[record.place] = nil
            state.isSeen.remove(record.place)
        }
    }
}
