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
        /// The mount, if the kernel tells: what has no identity of its own is the same while it is the same mount.
        var mount: String?
        /// The server and what is mounted from it; nil for a file system that is not on the network.
        var share: String?

        static let namespace = ProviderStoreNamespace<Record>("folder.mounts")
        var key: ProviderStoreKey { ProviderStoreKey(parent + "/" + name) }
        var place: Place { Place(name, in: ItemIdentifier(parent)) }
        var isLasting: Bool { identity.isLasting || share != nil }

        func isSame(as found: Record) -> Bool {
            identity.isProvenSame(as: found.identity)
                ?? ((mount == found.mount && identity.device == found.identity.device)
                    || (share != nil && share == found.share))
        }
    }

    /// A directory whose file system is away.
    struct AwayDirectory: Sendable {
        var identifier: ItemIdentifier
        var parent: ItemIdentifier
        var name: String
    }

    struct State {
        var records: [Place: Record] = [:]
        /// The records whose device is that of the file system since this start.
        var isSeen: Set<Place> = []
        var marks: [UInt64: String] = [:]
        /// Why the files of a file system cannot be used.
        var defects: [Place: FileProviderError] = [:]
        /// Where the user was told that a file system does not answer.
        var reported: Set<Place> = []
    }

    let manager: any FileProviderManager
    /// The folder, without symbolic links.
    let root: FilePath
    private let boot = Machine.bootIdentifier
    let state: Mutex<State>
    private let isEmpty: Atomic<Bool>

    /// - Throws: the errors of the store.
    init(manager: any FileProviderManager, root: FilePath) throws {
        self.manager = manager
        self.root = root
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

    var isWithoutRecords: Bool { isEmpty.load(ordering: .relaxed) }

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
        // Without a birth time, or in another mount, the same numbers may be those of another file system.
        if let known, isSeen, status.birth != nil || status.isMountUnique, known.mount == mount(of: status),
            known.identity.isSameFile(as: status)
        {
            return
        }
        var found = try record(of: directory, status, at: place)
        let isTop = status.isMountRoot || status.device != rootDevice
        if let known {
            if known.isSame(as: found) {
                let isUnchanged =
                    known.identity == found.identity && known.isMount == found.isMount && known.mount == found.mount
                if isSeen, isUnchanged { return }
                found.mark = known.mark
                return try keep(found, isStored: isUnchanged)
            }
            if present(known) != nil {
                try setAside(known)
                if !isTop { return }
            } else {
                if known.isMount, isKnown(known), !isReplaceable(known, by: found) { throw Self.isAway(place) }
                if !isTop { return try forget(known) }
            }
        }
        let moved = moved(to: found)
        found.mark = moved?.mark ?? newMark(for: found)
        try keep(found, isStored: false)
        if let moved { try forget(moved) }
    }

    /// Describes what is on a directory. It has no mark yet.
    private func record(of directory: FileDescriptor, _ status: FileStatus, at place: Place) throws(Errno) -> Record {
        let name = place.name ?? ""
        let identity = try SourceIdentity(of: directory)
        return Record(
            parent: place.directory.rawValue, name: name, identity: identity, mark: "", isMount: status.isMountRoot,
            mount: mount(of: status), share: identity.isOnNetwork ? Self.share(identity.device, named: name) : nil)
    }

    /// The mount of a file, also distinct from those before the machine was started; nil where the kernel does not tell.
    private func mount(of status: FileStatus) -> String? { status.mount.map { boot + " " + String($0) } }

    /// What is mounted from a server. The programs of FUSE call their sources as they like.
    private static func share(_ device: UInt64, named name: String) -> String? {
        let mount = try? MountTable().mounts.last {
            $0.deviceNumber == device && $0.filePath.lastComponent?.fileName == name
        }
        guard let mount, !mount.type.starts(with: "fuse"), mount.source.contains("/") else { return nil }
        return mount.type + " " + mount.source + " " + mount.root
    }

    /// Whether a file system takes the place of one that was there: nothing can say of both that they are the same, and nothing waits to
    /// be sent to the first. Its files are then new ones at each mount.
    private func isReplaceable(_ known: Record, by found: Record) -> Bool {
        guard found.isMount, !found.isLasting, !known.isLasting else { return false }
        let suffix = "@" + known.mark
        // The number of a hard link is after the mark.
        func isIn(_ identifier: ItemIdentifier) -> Bool { identifier.rawValue.prefix { $0 != "+" }.hasSuffix(suffix) }
        var isAwaited = false
        do {
            try manager.visitPendingItems { item in
                isAwaited = isIn(item.itemIdentifier) || isIn(item.parentItemIdentifier)
                return !isAwaited
            }
        } catch {
            return false
        }
        return !isAwaited
    }

    /// The mark of a file system that is seen at a place for the first time: that which it has at another place (a bind mount), else the
    /// number of its device, and more if another file system had that number before.
    private func newMark(for found: Record) -> String {
        let records = state.withLock { Array($0.records.values) }
        let twin = records.first { $0.place != found.place && isMounted($0, as: found.identity.device) }
        if let twin { return twin.mark }
        let taken = Set(records.map(\.mark))
        let number = String(found.identity.device, radix: 16)
        var mark = number
        var count = 0
        while taken.contains(mark) {
            count += 1
            mark = number + "@" + String(count, radix: 16)
        }
        return mark
    }

    /// Whether a file system is at its place now, and has this device. The record may be that of one that is gone, and the number of its
    /// device that of the next one.
    func isMounted(_ record: Record, as device: UInt64) -> Bool {
        guard let path = path(to: record.place) else { return false }
        // Other file systems are not asked: one that is dead may never answer.
        guard !record.isMount || (try? MountTable().mount(at: path))?.deviceNumber == device,
            let directory = try? FileDescriptor.openDirectory(notFollowing: path)
        else { return false }
        defer { try? directory.close() }
        guard let status = try? FileStatus(of: directory), status.device == device,
            let present = try? self.record(of: directory, status, at: record.place)
        else { return false }
        return record.isSame(as: present)
    }

    /// - Throws: `ubiquitousFileUnavailable` if the file system that was found at a name is none that can be a part of the folder.
    func checkUse(of place: @autoclosure () -> Place) throws(FileProviderError) {
        if isEmpty.load(ordering: .relaxed) { return }
        let place = place()
        if let defect = state.withLock({ $0.defects[place] }) { throw defect }
    }

    /// What the directory of a file system says that does not answer, or is another user's.
    private static let errorsOfDeadMounts: Set<Errno> = [
        .socketNotConnected, .staleNFSFileHandle, .noRouteToHost, .hostIsDown, .operationNotSupportedByDevice,
        .timedOut, .ioError, .permissionDenied,
    ]

    /// A name could not be looked at, or not be opened as a directory.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if a file system was there, or one is there that does not answer: the program of one of FUSE
    ///   has died, a server does not know it any more, or it is another user's. That says nothing of the rest of the folder.
    func examine(_ failure: Errno, at place: @autoclosure () -> Place) throws {
        if [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(failure) {
            if !isWithoutRecords { try examineMissing(place()) }
            return
        }
        guard Self.errorsOfDeadMounts.contains(failure) else { return }
        let place = place()
        guard let path = path(to: place), (try? MountTable().mount(at: path)) != nil else { return }
        let text = "the file system on '\(place.name ?? "/")' in the source does not answer: \(failure)"
        if state.withLock({ $0.reported.insert(place).inserted }) { manager.report(text) }
        throw FileProviderError(.ubiquitousFileUnavailable, text, errno: .operationNotSupportedByDevice)
    }

    /// There is no directory at a name.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if a file system was there.
    private func examineMissing(_ place: Place) throws {
        guard let record = state.withLock({ $0.records[place] }) else { return }
        if present(record) != nil { return try setAside(record) }
        if record.isMount, isKnown(record) { throw Self.isAway(place) }
        try forget(record)
    }

    /// The directory at a name whose file system is away or does not answer; nil if the system does not know it.
    func away(_ name: String, in parent: ItemIdentifier) -> AwayDirectory? {
        guard let identifier = manager.identifier(ofChildNamed: name, in: parent) else { return nil }
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

    /// Whether the system knows the directory: after a reimport it does not. What is in it does not matter, because items that were made
    /// here and wait to be sent are none that the remote has.
    func isKnown(_ record: Record) -> Bool {
        manager.identifier(ofChildNamed: record.name, in: ItemIdentifier(record.parent)) != nil
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
            state.reported.remove(record.place)
            state.marks[record.identity.device] = record.mark
        }
        isEmpty.store(false, ordering: .relaxed)
    }

    func forget(_ record: Record) throws {
        try manager.store.remove(record.key, in: Record.namespace)
        state.withLock { state in
            state.records[record.place] = nil
            state.defects[record.place] = nil
            state.isSeen.remove(record.place)
        }
    }
}
