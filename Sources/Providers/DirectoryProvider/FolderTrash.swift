import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// The folder's trash, as specified by freedesktop.org: `.Trash-UID` at its root, with `files` and `info`. Items that
/// other programs and users trash are reported, too. This provider trashes to the trash of its own user.
extension Folder {
    static let trashFiles = "files"

    /// The name of this user's trash directory.
    static let ownTrash = ".Trash-\(Machine.userIdentifier)"

    /// Whether a name at the root belongs to a trash directory, which is not an item.
    static func isTrashName(_ name: some Sequence<UInt8>) -> Bool {
        let bytes = Array(name)
        let prefix = Array(".Trash".utf8)
        guard bytes.starts(with: prefix) else { return false }
        let rest = bytes.dropFirst(prefix.count)
        guard let first = rest.first else { return true }
        return first == UInt8(ascii: "-") && rest.count > 1 && rest.dropFirst().allSatisfy { (48...57).contains($0) }
    }

    /// The open `files` directories of all trashes. The caller closes them.
    func openTrashes() throws -> [FileDescriptor] {
        let root = try openRoot()
        defer { try? root.close() }
        var names = try root.names().filter { $0.count > 6 && Self.isTrashName($0) }
            .compactMap { String(validating: $0, as: UTF8.self) }
        names.sort { one, _ in one.utf8.elementsEqual(Self.ownTrash.utf8) }
        return try names.compactMap { name -> FileDescriptor? in
            do throws(Errno) {
                let top = try root.openDirectory(named: name)
                defer { try? top.close() }
                return try top.openDirectory(named: Self.trashFiles)
            } catch {
                // The trashes of others may be closed for ever. What is in this user's own is not gone.
                if error == .permissionDenied, name.utf8.elementsEqual(Self.ownTrash.utf8) { throw error }
                return nil
            }
        }
    }

    /// As ``findTrashed(_:at:)`` and ``findTrashed(_:)``. An item that the system does not know in the trash is not looked for
    /// where this user's own denies access, and may be a hard link (``isMoved(_:)``).
    func findTrashedIfThere(_ identifier: ItemIdentifier) throws -> Place? {
        let known = manager.remoteTrashPath(of: identifier)
        do {
            if let known, let place = try findTrashed(identifier, at: known) { return place }
            if let place = try findTrashed(identifier), isMoved(place) { return place }
            return nil
        } catch Errno.permissionDenied where known == nil {
            return nil
        }
    }

    /// Searches the trashes until `body` returns a value.
    private func first<Value>(_ body: (FileDescriptor) throws -> Value?) throws -> Value? {
        var found: Value?
        for trash in try openTrashes() {
            defer { try? trash.close() }
            if found == nil { found = try body(trash) }
        }
        return found
    }

    func trashedItem(named name: String) throws -> FileProviderItem? {
        try first { try item(named: name, in: $0, parent: .trashContainer) }
    }

    func trashedItems(checking check: () throws -> Void) throws -> [FileProviderItem] {
        var items: [FileProviderItem] = []
        for trash in try openTrashes() {
            defer { try? trash.close() }
            for bytes in try trash.names() where isShown(bytes, in: trash, isTrash: true) {
                try check()
                let name = FileNameText.text(of: bytes)
                if let item = try item(named: name, in: trash, parent: .trashContainer) { items.append(item) }
            }
        }
        return items
    }

    /// Finds a trashed item or a descendant of one by its path below the trash.
    func findTrashed(_ identifier: ItemIdentifier, at path: [String]) throws -> Place? {
        var place: Place?
        for trash in try openTrashes() {
            if place == nil {
                place = try find(identifier, at: path, from: trash, .trashContainer)
            } else {
                try? trash.close()
            }
        }
        return place
    }

    /// The names of trashed items, valid while the trashes are unchanged.
    struct KnownTrash {
        var stamps: [FileMoment]
        /// By ``FolderItems/file(of:)``.
        var names: [String: String]
    }

    /// Finds an item that another program has trashed, by its identifier alone.
    func findTrashed(_ identifier: ItemIdentifier) throws -> Place? {
        let trashes = try openTrashes()
        defer { for trash in trashes { try? trash.close() } }
        guard !trashes.isEmpty else { return nil }
        let stamps = try trashes.map { try FileStatus(of: $0).modified }
        var known = knownTrash.withLock { $0 }
        if known?.stamps != stamps {
            var names: [String: String] = [:]
            for trash in trashes {
                for name in try trash.names().map(FileNameText.text) {
                    guard let status = try? FileStatus(of: name, in: trash) else { continue }
                    names[items.file(status)] = name
                }
            }
            let found = KnownTrash(stamps: stamps, names: names)
            known = found
            // A change within the same tick of the file system's clock would be missed.
            let now = FileTimestamp.now.seconds
            if stamps.allSatisfy({ $0.seconds < now - 1 }) { knownTrash.withLock { $0 = found } }
        }
        return try known?.names[FolderItems.file(of: identifier)].flatMap { try findTrashed(identifier, at: [$0]) }
    }

    // MARK: - Trashing

    /// Opens the `files` directory of this user's trash, and creates it if needed.
    func openOwnTrash() throws -> FileDescriptor {
        let root = try openRoot()
        defer { try? root.close() }
        let top = try openOrMake(Self.ownTrash, in: root)
        defer { try? top.close() }
        try openOrMake(TrashInformation.directory, in: top).close()
        return try openOrMake(Self.trashFiles, in: top)
    }

    private func openOrMake(_ name: String, in directory: FileDescriptor) throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            try directory.makeDirectory(named: name, permissions: 0o700)
        } catch {
            guard error == .fileExists else { throw error }
        }
        return try directory.openDirectory(named: name)
    }

    /// Reserves a name in the trash by writing its `info` file.
    ///
    /// - Parameter path: the original path of the item.
    func takeTrashName(for path: [String], in trash: FileDescriptor) throws -> String {
        let information = try TrashInformation.open(of: trash)
        defer { try? information.close() }
        let own = path.last ?? "trashed"
        func candidate(_ number: Int) -> String { Self.fitting(own, with: number == 1 ? "" : " \(number)") }
        var first = 1
        while true {
            let number = FreeNumber.search(from: first) { number in
                (try? FileStatus(of: candidate(number), in: trash)) != nil
                    || (try? FileStatus(of: TrashInformation.name(of: candidate(number)), in: information)) != nil
            }
            let name = candidate(number)
            do throws(Errno) {
                let file = try information.makeFile(named: TrashInformation.name(of: name), permissions: 0o600)
                defer { try? file.close() }
                let time = FileTimestamp(seconds: FileTimestamp.now.seconds)
                do {
                    try file.writeAll(toAbsoluteOffset: 0, TrashInformation.text(path: path, date: time))
                } catch {
                    throw error as? Errno ?? .ioError
                }
                return name
            } catch {
                // Another program took it meanwhile.
                guard error == .fileExists else { throw error }
                first = number + 1
            }
        }
    }

    /// Removes the `info` file of a name.
    func giveUpTrashName(_ name: String, in trash: FileDescriptor) {
        guard let information = try? TrashInformation.open(of: trash) else { return }
        defer { try? information.close() }
        try? information.unlink(named: TrashInformation.name(of: name))
    }

    /// Returns `name.ext`, `name 2.ext` and so on, cut so far that the name of its file in `info` is allowed.
    private static func fitting(_ name: String, with mark: String) -> String {
        let limit = FileProviderItem.maximumFilenameLength - TrashInformation.ending.utf8.count
        let dot = name.utf8.lastIndex(of: 0x2E).flatMap { $0 == name.utf8.startIndex ? nil : $0 } ?? name.utf8.endIndex
        let ending = String(name[dot...])
        guard ending.utf8.count < 200 else { return TrashInformation.shortened(name, for: mark, atMost: limit) }
        return TrashInformation.shortened(String(name[..<dot]), for: mark + ending, atMost: limit)
    }
}
