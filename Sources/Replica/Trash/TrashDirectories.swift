import FileProvider
import GRDB
import Syscalls
import SystemPackage

extension TransactionPart {
    /// Does something with the trash directories, of which the kernel is told.
    func withTrash<Value>(_ body: (inout TrashDirectories) throws -> Value) throws -> Value {
        var directories = TrashDirectories(db: db, contents: contents, now: now)
        let value = try body(&directories)
        tellKernel(directories.invalidations)
        return value
    }

    /// Says in `info` where an item was that has come into a directory of trashed items under a name.
    func writeTrashInformation(of row: Int64, named name: String, in files: InodeNumber) throws {
        try withTrash { directories in
            guard let trash = try directories.trash(with: files), let item = try db.item(id: row) else { return }
            try directories.writeInformation(of: item, named: name, in: trash)
        }
    }
}

/// The trash directories that the mount shows, as freedesktop.org has them: `.Trash-UID` at the root, with `files` and
/// `info`. They stay on this machine, and so do the files in `info`; what lies in `files` is in the remote's trash.
struct TrashDirectories {
    let db: Database
    /// The store of the files of `info`.
    let contents: ContentStore
    let now: FileTimestamp
    /// The changes that the kernel does not know of.
    private(set) var invalidations: [KernelInvalidation] = []

    /// One user's trash.
    struct Trash {
        var files: InodeNumber
        var information: InodeNumber
        var owner: UInt32
        var group: UInt32
    }

    static let files = "files"
    static let information = "info"

    /// The name at the root of a user's trash.
    static func name(of user: UInt32) -> String { ".Trash-\(user)" }

    static func user(of name: String) -> UInt32? {
        let prefix = ".Trash-"
        guard name.utf8.starts(with: prefix.utf8) else { return nil }
        return UInt32(name.dropFirst(prefix.count))
    }

    /// The role of a new directory in the trash, by its name and its parent's role.
    static func role(of name: String, in parent: InodeNumber, _ parentRole: TrashRole) -> TrashRole {
        if parent == .root { return user(of: name) == nil ? .none : .top }
        guard parentRole == .top else { return .none }
        if name.utf8.elementsEqual(files.utf8) { return .files }
        return name.utf8.elementsEqual(information.utf8) ? .information : .none
    }

    /// A user's trash, made where it is not there.
    mutating func trash(of user: UInt32, group: UInt32) throws -> Trash {
        let top = try directory(Self.name(of: user), in: .root, .top, user, group)
        return Trash(
            files: try directory(Self.files, in: top, .files, user, group),
            information: try directory(Self.information, in: top, .information, user, group), owner: user, group: group)
    }

    /// The trash that a directory of trashed items belongs to.
    mutating func trash(with files: InodeNumber) throws -> Trash? {
        guard let item = try db.item(ofInode: files), let top = item.parent, let above = try db.item(ofInode: top)
        else { return nil }
        let user = above.inode.owner ?? Machine.userIdentifier
        let group = above.inode.group ?? Machine.groupIdentifier
        return Trash(
            files: files, information: try directory(Self.information, in: top, .information, user, group),
            owner: user, group: group)
    }

    /// A name that nothing has in a trash: the item's own, or `name (2).ext`. It is cut so far that Linux allows the name of its
    /// file in `info`, which has to be `NAME.trashinfo`.
    func freeName(for name: String, in trash: Trash) throws -> String {
        let limit = Displacement.mostBytes - TrashInformation.ending.utf8.count
        return try Displacement.freeName(for: name, atMost: limit) { candidate in
            try db.item(named: candidate, in: trash.files) == nil
                && db.item(named: Self.informationName(of: candidate), in: trash.information) == nil
        }
    }

    // MARK: - info

    static func informationName(of name: String) -> String {
        Displacement.name(name + TrashInformation.ending, with: "")
    }

    /// Says where a trashed item was, unless that is said already.
    mutating func writeInformation(of item: ItemRecord, named name: String, in trash: Trash) throws {
        let fileName = Self.informationName(of: name)
        guard let place = item.trash, try db.item(named: fileName, in: trash.information) == nil
        else { return }
        let bytes = TrashInformation.text(path: try path(of: place), date: place.date)
        assert(TrashInformation.isText(bytes))
        let number = try insert(
            fileName, in: trash.information, kind: .file, permissions: 0o600, size: Int64(bytes.count), .none,
            owner: trash.owner, group: trash.group)
        let file = try contents.create(number, size: 0, isFirst: true)
        defer { try? file.close() }
        try file.writeAll(toAbsoluteOffset: 0, bytes)
    }

    /// Removes the file in `info` of an item that has left the trash.
    ///
    /// - Returns: the inode that has no name left.
    mutating func removeInformation(named name: String, in files: InodeNumber) throws -> InodeNumber? {
        guard let trash = try trash(with: files) else { return nil }
        let fileName = Self.informationName(of: name)
        guard let item = try db.item(named: fileName, in: trash.information) else { return nil }
        try db.deleteItem(item)
        try db.unlink(item.inode.number, at: now)
        invalidations += [.departure(of: item, from: trash.information), .contents(trash.information)]
        return item.inode.linkCount <= 1 ? item.inode.number : nil
    }

    private mutating func directory(
        _ name: String, in parent: InodeNumber, _ role: TrashRole, _ user: UInt32, _ group: UInt32
    ) throws -> InodeNumber {
        if let known = try db.item(named: name, in: parent) {
            if known.trashRole == role { return known.inode.number }
            try makeRoom(known, in: parent)
        }
        return try insert(
            name, in: parent, kind: .directory, permissions: 0o700, size: 0, role, owner: user, group: group)
    }

    /// Something else has the name: it is shown under another.
    private mutating func makeRoom(_ item: ItemRecord, in parent: InodeNumber) throws {
        for number in 2... {
            let name = Displacement.decorated(item.name, number: number)
            guard try db.item(named: name, in: parent) == nil else { continue }
            try db.setName(of: item.id, to: name)
            invalidations += [.departure(of: item, from: parent), .entry(parent: parent, name: name)]
            return
        }
    }

    private mutating func insert(
        _ name: String, in parent: InodeNumber, kind: InodeKind, permissions: UInt16, size: Int64, _ role: TrashRole,
        owner: UInt32, group: UInt32
    ) throws -> InodeNumber {
        let number = try db.insertTrashItem(
            name, in: parent, kind: kind, permissions: permissions, size: size, role: role, owner: owner, group: group,
            at: now)
        invalidations += [.entry(parent: parent, name: name), .contents(parent)]
        return number
    }

    /// The path of an item before it was trashed, as far as its directories still exist.
    private func path(of place: TrashPlace) throws -> [String] {
        var names: [String] = [place.name]
        for number in place.ancestors where number != .root {
            if let item = try db.item(ofInode: number) { names.append(item.name) }
        }
        return names.reversed()
    }
}
