import FileProvider
import Syscalls
import SystemPackage

/// A file that is being uploaded to a directory: without a name, or with a hidden one, until it is complete and
/// durable.
final class Upload {
    let file: FileDescriptor
    let directory: FileDescriptor
    /// The hidden name to remove at the end; nil if there is none.
    private var hidden: String?
    private static let piece: Int64 = 16 << 20

    /// - Parameters:
    ///   - directory: remains open; the caller closes it after the upload has ended.
    ///   - permissions: masked by the umask.
    ///   - isNameless: false for a hidden name from the start, for file systems that need one.
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

    /// Copies the content, without confirming it.
    func copy(_ source: ContentSource, _ cancellation: BlockingCalls.Cancellation) throws {
        var offset: Int64 = 0
        while offset < source.size {
            try cancellation.check()
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

    /// Links the file to a new name, atomically.
    ///
    /// - Throws: EEXIST if the name exists; `CancellationError` if the upload was given up.
    func publish(as name: String, _ cancellation: BlockingCalls.Cancellation) throws {
        try cancellation.check()
        guard let hidden else { return try file.link(as: name, in: directory) }
        try directory.renameNewOrLink(hidden, to: name)
        self.hidden = nil
    }

    /// Gives the file a hidden name, if it has none.
    func hide() throws(Errno) -> String {
        if let hidden { return hidden }
        let name = HiddenName.make()
        try file.link(as: name, in: directory)
        hidden = name
        return name
    }

    /// Gives the file the hidden name of a copy (``InPlaceEdit/copy``).
    func hideAsCopy() throws(Errno) -> String {
        let name = InPlaceEdit.makeCopyName()
        if let hidden {
            try directory.rename(hidden, to: name, in: directory)
        } else {
            try file.link(as: name, in: directory)
        }
        hidden = name
        return name
    }

    /// Keeps the hidden name at the end.
    func leaveHidden() {
        hidden = nil
    }

    /// The result of a replacement.
    enum Exchange {
        case done
        /// The existing file was another one or has changed; it was restored.
        case conflict
    }

    /// Replaces an existing file atomically, if that is still unchanged.
    ///
    /// - Throws: ENOENT if the name does not exist; `CancellationError` if the upload was given up.
    func replace(
        _ name: String, expecting status: FileStatus, _ folder: Folder, _ cancellation: BlockingCalls.Cancellation
    ) throws -> Exchange {
        let aside = try hide()
        try cancellation.check()
        do throws(Errno) {
            try directory.exchange(aside, with: name)
        } catch {
            guard error == .invalidArgument || error == .notSupported else { throw error }
            // Some network file systems cannot exchange names. The check and the rename are then not atomic.
            let now = try FileStatus(of: name, in: directory, isFresh: true)
            guard now.isUnchanged(from: status) else { return .conflict }
            try cancellation.check()
            try directory.rename(aside, to: name, in: directory)
            hidden = nil
            return .done
        }
        // The replaced file has the hidden name now.
        hidden = nil
        if let displaced = try? FileStatus(of: aside, in: directory, isFresh: true), displaced.isUnchanged(from: status)
        {
            try? directory.unlink(named: aside)
            return .done
        }
        do throws(Errno) {
            try directory.exchange(aside, with: name)
            if let back = try? FileStatus(of: aside, in: directory), try back.isSameFile(as: FileStatus(of: file)) {
                hidden = aside
            } else {
                // Another program has already replaced the new file: its file keeps the name.
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

    /// Whether this is the same file with unchanged content.
    func isUnchanged(from other: FileStatus) -> Bool {
        isSameFile(as: other) && size == other.size && modified == other.modified
    }
}

extension FileDescriptor {
    /// Renames a file in this directory without replacing another one, also on file systems without RENAME_NOREPLACE.
    func renameNewOrLink(_ name: String, to newName: String) throws(Errno) {
        do throws(Errno) {
            try renameNew(name, to: newName, in: self)
        } catch {
            guard error == .invalidArgument || error == .notSupported else { throw error }
            // At most an empty directory is replaced by a directory.
            if try FileStatus(of: name, in: self).kind == .directory { return try rename(name, to: newName, in: self) }
            do throws(Errno) {
                try link(name, as: newName, in: self)
            } catch {
                guard [.notPermitted, .notSupported, .noFunction, .tooManyLinks].contains(error) else { throw error }
                return try renameChecked(name, to: newName)
            }
            try unlink(named: name)
        }
    }

    /// For file systems without RENAME_NOREPLACE and without hard links: the check and the rename are not atomic.
    private func renameChecked(_ name: String, to newName: String) throws(Errno) {
        do throws(Errno) {
            _ = try FileStatus(of: newName, in: self, isFresh: true)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
            return try rename(name, to: newName, in: self)
        }
        throw .fileExists
    }
}

extension Folder {
    /// Restores a file of another program that was moved aside: with its name, or beside the file that has the name
    /// now.
    func giveBack(_ hidden: String, as name: String, in directory: FileDescriptor) {
        if (try? directory.renameNewOrLink(hidden, to: name)) != nil { return }
        for number in 1...100 {
            let other = "\(number) \(name)"
            guard (try? directory.renameNewOrLink(hidden, to: other)) != nil else { continue }
            return manager.report("the source has two files for '\(name)': one of them has the name '\(other)' now")
        }
        manager.report("a file of the source could not be renamed back to '\(name)': its name is '\(hidden)'")
    }
}
