import FileNames
import FileProvider
import Syscalls
import SystemPackage

/// Applies changes to the folder. All functions block and throw the errors of system calls.
struct FolderWriter {
    let folder: Folder
    let cancellation: BlockingCalls.Cancellation

    /// A name in an open directory.
    struct NamedEntry {
        var directory: FileDescriptor
        var name: String
        var parent: ItemIdentifier
    }

    // MARK: - Creation

    func create(
        _ template: FileProviderItem, _ fields: ItemFields, contents: ContentSource?, options: CreateItemOptions
    ) throws -> ItemChange {
        let parent = template.parentItemIdentifier
        try checkName(template.filename, in: parent)
        let directory = parent == .trashContainer ? try folder.openOwnTrash() : try folder.openDirectory(parent)
        defer { try? directory.close() }
        var entry = NamedEntry(directory: directory, name: template.filename, parent: parent)
        let status = try status(of: entry)
        if let status, options.contains(.mayAlreadyExist), try isSame(entry, status, template, contents, options) {
            if options.contains(.keepExisting) {
                let version = FolderItems.version(of: status).contentVersion
                return try answer(entry, [], stored: status.kind == .regular ? version : nil)
            }
            return try adopt(entry, status, template, fields)
        }
        // The trash may contain equal names.
        if status != nil, parent != .trashContainer { throw collision(entry) }
        if options.contains(.recognizeOnly) {
            return .refused(reason: "the source has no item '\(template.filename)' there")
        }
        if parent == .trashContainer { entry.name = try folder.takeTrashName(for: [entry.name], in: directory) }
        let pending: ItemFields
        let stored: [UInt8]?
        do {
            (pending, stored) = try folder.readOnlyDirectories.writing(to: [directory]) {
                try make(template, fields, contents, at: entry)
            }
        } catch Errno.fileExists {
            throw collision(entry)
        }
        folder.noteMade(entry.name, in: directory, parent)
        // To synchronize the directory may take long: another program may write the file meanwhile.
        let change = try answer(entry, pending, stored: stored)
        try directory.synchronize(asDirectory: true)
        return change
    }

    private func make(
        _ template: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?, at entry: NamedEntry
    ) throws -> (pending: ItemFields, stored: [UInt8]?) {
        try cancellation.check()
        switch template.kind {
        case .file: return try makeFile(template, fields, contents, at: entry)
        case .directory:
            let mode = fields.contains(.permissions) ? template.permissions : nil
            try entry.directory.makeDirectory(named: entry.name, permissions: (mode ?? 0o777) & 0o777)
        case .symbolicLink:
            guard let target = template.symlinkTargetPath, !target.isEmpty else {
                throw FileProviderError(.cannotSynchronize, "a symbolic link without a target")
            }
            do throws(Errno) {
                try entry.directory.makeLink(named: entry.name, to: target)
            } catch {
                // symlink(2): EPERM is of file systems without symbolic links.
                guard [.notPermitted, .noFunction, .notSupported].contains(error) else { throw error }
                throw FileProviderError(.excludedFromSync, "the source's file system cannot hold symbolic links")
            }
        }
        return (try apply(fields, of: template, to: entry), nil)
    }

    private func makeFile(
        _ template: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?, at entry: NamedEntry
    ) throws -> (pending: ItemFields, stored: [UInt8]) {
        let mode = fields.contains(.permissions) ? template.permissions : nil
        let upload = try upload(contents, of: template, into: entry.directory, permissions: (mode ?? 0o666) & 0o777)
        let pending = try FolderAttributes.apply(fields, of: template, to: upload.file)
        try finish(upload, contents)
        let stored = try contentVersion(of: upload.file)
        try upload.publish(as: entry.name, cancellation)
        return (pending, stored)
    }

    /// The existing item is the offered one, most likely because the response to an earlier call was lost.
    private func adopt(
        _ entry: NamedEntry, _ status: FileStatus, _ template: FileProviderItem, _ fields: ItemFields
    ) throws -> ItemChange {
        let (pending, stored) = try apply(fields, of: template, to: entry, expecting: status)
        let change = try answer(entry, pending, stored: stored)
        try entry.directory.synchronize(asDirectory: true)
        return change
    }

    // MARK: - Helpers

    /// Copies a file's content, without confirming it.
    func upload(
        _ contents: ContentSource?, of item: FileProviderItem, into directory: FileDescriptor, permissions: UInt16
    ) throws -> Upload {
        guard contents != nil || item.documentSize ?? 0 == 0 else {
            throw FileProviderError(
                .cannotSynchronize, "the content of '\(item.filename)' was not sent",
                itemIdentifier: item.itemIdentifier)
        }
        let upload = try Upload(in: directory, permissions: permissions)
        if let contents { try upload.copy(contents, cancellation) }
        return upload
    }

    /// The file is visible from here on.
    func finish(_ upload: Upload, _ contents: ContentSource?) throws {
        try contents?.confirm()
        try upload.file.synchronize()
        // Synchronizing may have taken long.
        try cancellation.check()
    }

    func checkName(_ name: String, in parent: ItemIdentifier) throws {
        if parent == .rootContainer, Folder.isTrashName(name.utf8) {
            throw FileProviderError(.excludedFromSync, "'\(name)' is the name of a trash on the source")
        }
        try FileProviderItem.check(newFilename: name)
    }

    /// - Parameter isFresh: as ``FileStatus/init(of:in:isFresh:)``.
    /// - Returns: nil if the name does not exist.
    /// - Throws: `ubiquitousFileUnavailable` if a file system is there that does not answer; POSIX errors.
    func status(of entry: NamedEntry, isFresh: Bool = false) throws -> FileStatus? {
        do throws(Errno) {
            return try FileStatus(of: entry.name, in: entry.directory, isFresh: isFresh)
        } catch {
            if error == .noSuchFileOrDirectory { return nil }
            try folder.mounts.examine(error, at: FolderMounts.Place(entry.name, in: entry.parent))
            throw error
        }
    }

    func item(at entry: NamedEntry) throws -> FileProviderItem? {
        try folder.item(named: entry.name, in: entry.directory, parent: entry.parent)
    }

    func collision(_ entry: NamedEntry) -> FileProviderError {
        if let item = try? item(at: entry) { return FileProviderError.filenameCollision(with: item) }
        return FileProviderError(.cannotSynchronize, "the source has a file '\(entry.name)' that is not an item")
    }

    /// Sets attributes of the file with a name.
    func apply(
        _ fields: ItemFields, of item: FileProviderItem, to entry: NamedEntry
    ) throws(Errno) -> ItemFields {
        let file = try entry.directory.openReference(named: entry.name)
        defer { try? file.close() }
        let kind = try FileStatus(of: file).kind
        return try folder.setAttributes(fields, of: item, to: file, kind)
    }

    /// Sets attributes of a file whose content was looked at.
    ///
    /// - Parameter status: of the file at that time; ENOENT if the name refers to another one.
    /// - Returns: the fields that were not stored, and the version of the content that was looked at; nil for what has none.
    func apply(
        _ fields: ItemFields, of item: FileProviderItem, to entry: NamedEntry, expecting status: FileStatus
    ) throws(Errno) -> (pending: ItemFields, stored: [UInt8]?) {
        let file = try entry.directory.openReference(named: entry.name)
        defer { try? file.close() }
        let now = try FileStatus(of: file, isFresh: true)
        guard now.isSameFile(as: status) else { throw .noSuchFileOrDirectory }
        guard now.kind == .regular else { return (try folder.setAttributes(fields, of: item, to: file, now.kind), nil) }
        guard now.isUnchanged(from: status) else {
            // Another program has written it. With the sent date its bytes would look like those that are here.
            let pending = try folder.setAttributes(
                fields.subtracting(.contentModificationDate), of: item, to: file, now.kind)
            return (pending, FolderItems.version(of: status).contentVersion)
        }
        let pending = try folder.setAttributes(fields, of: item, to: file, now.kind)
        return (pending, try contentVersion(of: file))
    }

    /// The answer for the file with a name.
    ///
    /// - Parameter stored: the version of the content that was stored or compared; nil if there is none. If another program has written
    ///   to the file since, its content must be fetched.
    /// - Parameter known: the metadata version that the system goes on to know; nil for the present one.
    func answer(
        _ entry: NamedEntry, _ pending: ItemFields, stored: [UInt8]? = nil, known: [UInt8]? = nil
    ) throws -> ItemChange {
        guard var item = try item(at: entry) else { throw Errno.noSuchFileOrDirectory }
        if let known { item.itemVersion.metadataVersion = known }
        // On a network mount the time of a new file may still change.
        let isOther = stored.map { $0 != item.itemVersion.contentVersion } ?? false
        return .applied(item, stillPending: pending, shouldFetchContent: isOther && !folder.isOnNetwork)
    }

    func contentVersion(of file: FileDescriptor) throws(Errno) -> [UInt8] {
        FolderItems.version(of: try FileStatus(of: file)).contentVersion
    }

    /// Whether a file may have been written in place and given its old time since it had a version: the change time, which no program
    /// can set, is another one. It is after a hard link was made or removed, too, and on a network mount without any change: there it says
    /// nothing.
    ///
    /// - Parameter base: with the content version that the file has; an empty metadata version is not known.
    func mayBeRewritten(_ status: FileStatus, since base: ItemVersion, in directory: FileDescriptor) -> Bool {
        let present = FolderItems.version(of: status).metadataVersion
        return status.kind == .regular && status.size > 0 && status.linkCount == 1
            && FolderItems.linkCount(of: base) == 1 && !base.metadataVersion.isEmpty
            && present != base.metadataVersion && !folder.isOnNetwork && !directory.isOnNetworkFileSystem
    }

    /// Whether the existing file is the offered one. Without contents, the size is compared.
    private func isSame(
        _ entry: NamedEntry, _ status: FileStatus, _ template: FileProviderItem, _ contents: ContentSource?,
        _ options: CreateItemOptions
    ) throws -> Bool {
        switch (template.kind, status.kind) {
        case (.directory, .directory): return true
        case (.symbolicLink, .symbolicLink):
            let target = FileNameText.bytes(of: template.symlinkTargetPath ?? "")
            return try entry.directory.linkTarget(named: entry.name) == target
        case (.file, .regular):
            guard let contents else { return status.size == template.documentSize ?? 0 }
            // Bytes of a known version need not be compared.
            if options.contains(.keepExisting), status.size == contents.size,
                template.itemVersion.contentVersion == FolderItems.version(of: status).contentVersion
            {
                return true
            }
            return try hasContent(entry, status, contents)
        default: return false
        }
    }

    /// Whether a file has exactly these bytes.
    func hasContent(_ entry: NamedEntry, _ status: FileStatus, _ source: ContentSource) throws -> Bool {
        guard status.kind == .regular, status.size == source.size,
            let file = try? entry.directory.openFile(named: entry.name)
        else { return false }
        defer { try? file.close() }
        let before = try FileStatus.settled(of: file)
        guard before.isUnchanged(from: status) else { return false }
        let piece = 1 << 20
        var offset: Int64 = 0
        while offset < source.size {
            try cancellation.check()
            let bytes = try source.read(at: offset, count: piece)
            guard try file.readBytes(at: offset, count: bytes.count) == bytes else { return false }
            offset += Int64(bytes.count)
        }
        try source.confirm()
        let after = try FileStatus(of: file)
        return after.isUnchanged(from: before) && after.changed == before.changed
    }
}
