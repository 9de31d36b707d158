import FileNames
import Syscalls
import SystemPackage

/// The files in the directory of a domain that is not mounted, which were written there by mistake. After the mount they are below
/// it, and are moved into it.
struct FoundFiles {
    struct Report {
        /// The number of files and links that are in the mount now.
        var moved = 0
        /// Paths below the directory, each with the reason.
        var left: [(path: String, reason: String)] = []
    }

    let names: [String]
    /// Reaches the directory also when a mount hides it.
    private let directory: FileDescriptor

    /// Opens a directory; nil if there is none, or nothing in it.
    init?(in path: String) {
        guard
            let opened = try? FileDescriptor.open(
                FilePath(fileNamed: path), .readOnly, options: [.directory, .closeOnExec, .noFollow])
        else { return nil }
        let names = ((try? opened.names()) ?? []).map { FileNameText.text(of: $0) }.sorted()
        guard !names.isEmpty else {
            try? opened.close()
            return nil
        }
        (directory, self.names) = (opened, names)
    }

    func close() { try? directory.close() }

    /// Some names, and how many more there are.
    var description: String {
        let shown = names.prefix(3).map { "'\($0)'" }.joined(separator: ", ")
        return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
    }

    /// Moves them into the mount that hides them. A file is removed from the directory once it is in the mount and safe there. One
    /// that the mount has with the same content is only removed, and one whose name is taken gets another.
    func move(into mount: String) throws -> Report {
        let target = try FileDescriptor.open(
            FilePath(fileNamed: mount), .readOnly, options: [.directory, .closeOnExec, .noFollow])
        defer { try? target.close() }
        // The daemon takes the owner's right to write to the directory while the domain is known.
        let permissions = try FileStatus(of: directory).permissions
        let isProtected = permissions & 0o200 == 0
        if isProtected { try directory.setPermissions(permissions | 0o200) }
        defer { if isProtected { try? directory.setPermissions(permissions) } }
        var report = Report()
        move(from: directory, to: target, below: "", &report)
        return report
    }

    private func move(
        from source: FileDescriptor, to target: FileDescriptor, below path: String, _ report: inout Report
    ) {
        let names: [String]
        do {
            names = try source.names().map { FileNameText.text(of: $0) }.sorted()
        } catch {
            return report.left.append((path, "\(error)"))
        }
        for name in names {
            let place = path.isEmpty ? name : path + "/" + name
            do {
                try move(name, from: source, to: target, at: place, &report)
            } catch {
                report.left.append((place, "\(error)"))
            }
        }
    }

    private func move(
        _ name: String, from source: FileDescriptor, to target: FileDescriptor, at path: String, _ report: inout Report
    ) throws {
        let reference = try source.openReference(named: name)
        defer { try? reference.close() }
        let status = try FileStatus(of: reference)
        switch status.kind {
        case .directory: try moveDirectory(name, status, from: source, to: target, at: path, &report)
        case .regular:
            try moveFile(name, status, from: source, to: target)
            report.moved += 1
        case .symbolicLink:
            let link = try source.linkTarget(named: name)
            try Self.make(name) { name in
                if (try? target.linkTarget(named: name)) == link { return }
                try target.makeLink(named: name, to: FileNameText.text(of: link))
            }
            try source.unlink(named: name)
            report.moved += 1
        case .special: report.left.append((path, "it is neither a file, a directory nor a link"))
        }
    }

    private func moveDirectory(
        _ name: String, _ status: FileStatus, from source: FileDescriptor, to target: FileDescriptor, at path: String,
        _ report: inout Report
    ) throws {
        let from = try Self.openToRead(name, in: source)
        defer { try? from.close() }
        var isNew = true
        let made = try Self.make(name) { name in
            do {
                try target.makeDirectory(named: name, permissions: 0o700)
            } catch Errno.fileExists {
                // A directory that the mount has takes in the files.
                try target.openDirectory(named: name).close()
                isNew = false
            }
        }
        let into = try Self.openToRead(made, in: target)
        defer { try? into.close() }
        let left = report.left.count
        move(from: from, to: into, below: path, &report)
        if isNew { try Self.copyAttributes(of: from, status, to: into) }
        if report.left.count == left { try source.removeDirectory(named: name) }
    }

    private func moveFile(
        _ name: String, _ status: FileStatus, from source: FileDescriptor, to target: FileDescriptor
    ) throws {
        let from = try source.openFile(named: name)
        defer { try? from.close() }
        if try Self.hasContent(of: from, status, name, in: target) { return try source.unlink(named: name) }
        // It gets its name when it is whole: of a command that is ended in between nothing is left.
        let into = try target.makeNamelessFile(permissions: 0o600)
        defer { try? into.close() }
        guard try into.copy(from: from, at: 0, to: 0, count: status.size) == status.size else { throw Errno.ioError }
        try Self.copyAttributes(of: from, status, to: into)
        try Self.make(name) { name in try into.link(as: name, in: target) }
        try into.synchronize()
        try source.unlink(named: name)
    }

    /// Makes something under a name, or under another if that is taken (EEXIST).
    @discardableResult
    private static func make(_ name: String, _ body: (String) throws -> Void) throws -> String {
        var candidate = name
        for number in 1... {
            do {
                try body(candidate)
                return candidate
            } catch let error as Errno where [.fileExists, .notDirectory].contains(error) {
                candidate = decorated(name, number)
            }
        }
        return candidate
    }

    /// `report.txt` becomes `report (found 1).txt`.
    private static func decorated(_ name: String, _ number: Int) -> String {
        let dot = name.dropFirst().lastIndex(of: ".") ?? name.endIndex
        let mark = " (found \(number))"
        var stem = name[..<dot]
        while FileNameText.byteCount(of: stem + mark + name[dot...]) > 255, !stem.isEmpty { stem = stem.dropLast() }
        return stem + mark + name[dot...]
    }

    private static func openToRead(_ name: String, in directory: FileDescriptor) throws -> FileDescriptor {
        let reference = try directory.openDirectory(named: name)
        defer { try? reference.close() }
        return try FileDescriptor.open(
            "/proc/self/fd/\(reference.rawValue)", .readOnly, options: [.directory, .closeOnExec])
    }

    /// Whether the mount has a file of this name with the same content.
    private static func hasContent(
        of file: FileDescriptor, _ status: FileStatus, _ name: String, in target: FileDescriptor
    ) throws -> Bool {
        guard let reference = try? target.openReference(named: name) else { return false }
        defer { try? reference.close() }
        let present = try FileStatus(of: reference)
        guard present.kind == .regular, present.size == status.size else { return false }
        let other = try target.openFile(named: name)
        defer { try? other.close() }
        var position: Int64 = 0
        while position < status.size {
            let bytes = try file.readBytes(at: position, count: 1 << 20)
            guard !bytes.isEmpty, try other.holds(bytes.span.bytes, at: position) else { return false }
            position += Int64(bytes.count)
        }
        return true
    }

    private static func copyAttributes(
        of source: FileDescriptor, _ status: FileStatus, to target: FileDescriptor
    ) throws {
        for (name, value) in source.extendedAttributes() where name.hasPrefix("user.") {
            try target.setExtendedAttribute(name, to: value)
        }
        if Machine.userIdentifier == 0 { try target.setOwner(status.owner, group: status.group) }
        try target.setPermissions(status.permissions)
        try target.setModified(status.modified)
    }
}
