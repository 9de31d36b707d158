import FileProvider
import Syscalls
import SystemPackage

/// One file on its way into a directory: nameless, or under a hidden name, until it is whole and on the disk.
final class Upload {
    let file: FileDescriptor
    let directory: FileDescriptor
    /// The name to remove when all is over; nil when there is none.
    private var hidden: String?
    private static let piece: Int64 = 16 << 20

    /// - Parameters:
    ///   - directory: stays the caller's to close, later than this ends.
    ///   - permissions: less what the umask takes away.
    ///   - isNameless: false to have a hidden name from the beginning, as where a file system wants one.
    init(in directory: FileDescriptor, permissions: UInt16, isNameless: Bool = true) throws(Errno) {
        self.directory = directory
        do throws(Errno) {
            guard isNameless else { throw .notSupported }
            file = try directory.makeNamelessFile(permissions: permissions)
        } catch {
            guard [.notSupported, .invalidArgument, .isDirectory, .noSuchFileOrDirectory].contains(error) else {
                throw error
            }
            let name = HiddenName.make()
            file = try directory.makeFile(named: name, permissions: permissions)
            hidden = name
        }
    }

    deinit {
        if let hidden { try? directory.unlink(named: hidden) }
        try? file.close()
    }

    /// Takes the content in. It is not yet confirmed.
    func copy(_ source: ContentSource, _ wish: BlockingCalls.Wish) throws {
        var offset: Int64 = 0
        while offset < source.size {
            try wish.check()
            let count = min(Self.piece, source.size - offset)
            let done = try file.copy(from: source.descriptor, at: offset, to: offset, count: count)
            guard done == count else {
                try source.confirm()
                throw FileProviderError.posix(.ioError, "the content ends at \(offset + done) of \(source.size) bytes")
            }
            offset += count
            source.advance(by: count)
        }
    }

    /// Gives the file a name that nothing has, in one step.
    ///
    /// - Throws: EEXIST when something has it.
    func publish(as name: String) throws(Errno) {
        guard let hidden else { return try file.link(as: name, in: directory) }
        try directory.renameNewOrLink(hidden, to: name)
        self.hidden = nil
    }

    /// Gives the file a hidden name, where it has none yet.
    func hide() throws(Errno) -> String {
        if let hidden { return hidden }
        let name = HiddenName.make()
        try file.link(as: name, in: directory)
        hidden = name
        return name
    }

    /// The hidden name stays when this ends.
    func leaveHidden() {
        hidden = nil
    }

    /// How an exchange ended.
    enum Exchange {
        case done
        /// Another file, or another version of it, is there, and has its place again.
        case conflict
    }

    /// Puts the file in the place of another, which must still be as it was found, in one step.
    ///
    /// - Throws: ENOENT when nothing has that name.
    func replace(_ name: String, expecting status: FileStatus, _ folder: Folder) throws(Errno) -> Exchange {
        let aside = try hide()
        do throws(Errno) {
            try directory.exchange(aside, with: name)
        } catch {
            guard error == .invalidArgument || error == .notSupported else { throw error }
            // Not every file system on a network can exchange names. What is lost there is the moment in between.
            guard try FileStatus(of: name, in: directory).isUnchanged(from: status) else { return .conflict }
            try directory.rename(aside, to: name, in: directory)
            hidden = nil
            return .done
        }
        // The other one has the hidden name now.
        hidden = nil
        if let displaced = try? FileStatus(of: aside, in: directory), displaced.isUnchanged(from: status) {
            try? directory.unlink(named: aside)
            return .done
        }
        do throws(Errno) {
            try directory.exchange(aside, with: name)
            if let back = try? FileStatus(of: aside, in: directory), try back.isSameFile(as: FileStatus(of: file)) {
                hidden = aside
            } else {
                // Somebody has replaced the new file already: the newest has the name, and ours is gone.
                try directory.exchange(aside, with: name)
                folder.giveBack(aside, as: name, in: directory)
            }
        } catch {
            folder.giveBack(aside, as: name, in: directory)
        }
        return .conflict
    }
}

extension FileStatus {
    func isSameFile(as other: FileStatus) -> Bool { inode == other.inode && device == other.device }

    /// Whether it is the same file with the same content.
    func isUnchanged(from other: FileStatus) -> Bool {
        isSameFile(as: other) && size == other.size && modified == other.modified
    }
}

extension FileDescriptor {
    /// Gives a file in this directory another name in it that nothing has, also where renaming cannot see to that.
    func renameNewOrLink(_ name: String, to newName: String) throws(Errno) {
        do throws(Errno) {
            try renameNew(name, to: newName, in: self)
        } catch {
            guard error == .invalidArgument || error == .notSupported else { throw error }
            try link(name, as: newName, in: self)
            try unlink(named: name)
        }
    }
}

extension Folder {
    /// Somebody's file that was put aside has to be seen again: under its name, or beside what has that name by now.
    func giveBack(_ hidden: String, as name: String, in directory: FileDescriptor) {
        if (try? directory.renameNewOrLink(hidden, to: name)) != nil { return }
        for number in 1...100 {
            let other = "\(number) \(name)"
            guard (try? directory.renameNewOrLink(hidden, to: other)) != nil else { continue }
            return manager.report("the source has two files for '\(name)': one of them is called '\(other)' now")
        }
        manager.report("the source has a file for '\(name)' that could not be given its name back: '\(hidden)'")
    }
}
