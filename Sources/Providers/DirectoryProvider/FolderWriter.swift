import FileProvider
import Syscalls
import SystemPackage

/// Applies changes to the folder. All functions block and throw the errors of system calls.
struct FolderWriter {
    let folder: Folder
    let wish: BlockingCalls.Wish

    // MARK: - Making

    func create(
        _ template: FileProviderItem, _ fields: ItemFields, contents: ContentSource?, options: CreateItemOptions
    ) throws -> ItemChange {
        let parent = template.parentItemIdentifier
        try checkName(template.filename, in: parent)
        let directory = parent == .trashContainer ? try folder.openOwnTrash() : try folder.openDirectory(parent)
        defer { try? directory.close() }
        var template = template
        if parent == .trashContainer {
            let status = try status(of: template.filename, in: directory)
            let isThere =
                try options.contains(.mayAlreadyExist)
                && status.map { try isSame(template.filename, $0, in: directory, template, contents, options) } ?? false
            if !isThere, options.contains(.recognizeOnly) { return notThere(template) }
            if !isThere { template.filename = try folder.takeTrashName(for: [template.filename], in: directory) }
        }
        let name = template.filename
        if let status = try status(of: name, in: directory) {
            guard options.contains(.mayAlreadyExist),
                try isSame(name, status, in: directory, template, contents, options)
            else { throw collision(name, in: directory, parent) }
            if options.contains(.keepExisting) {
                return try answer(
                    name, in: directory, parent, [],
                    stored: status.kind == .regular ? FolderItems.version(of: status).contentVersion : nil)
            }
            return try adopt(name, status, in: directory, parent, template, fields)
        }
        if options.contains(.recognizeOnly) { return notThere(template) }
        let pending: ItemFields
        var stored: [UInt8]?
        do {
            switch template.kind {
            case .file: (pending, stored) = try makeFile(template, fields, contents, in: directory)
            case .directory:
                let mode = fields.contains(.permissions) ? template.permissions : nil
                try directory.makeDirectory(named: name, permissions: (mode ?? 0o777) & 0o777)
                pending = try apply(fields, of: template, to: name, in: directory)
            case .symbolicLink:
                guard let target = template.symlinkTargetPath, !target.isEmpty else {
                    throw FileProviderError(.cannotSynchronize, "a symbolic link without a target")
                }
                try directory.makeLink(named: name, to: target)
                pending = try apply(fields, of: template, to: name, in: directory)
            }
        } catch Errno.fileExists {
            throw collision(name, in: directory, parent)
        }
        folder.noteMade(name, in: directory, parent)
        try directory.synchronize(asDirectory: true)
        return try answer(name, in: directory, parent, pending, stored: stored)
    }

    private func makeFile(
        _ template: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?, in directory: FileDescriptor
    ) throws -> (pending: ItemFields, stored: [UInt8]) {
        let mode = fields.contains(.permissions) ? template.permissions : nil
        let upload = try upload(contents, of: template, into: directory, permissions: (mode ?? 0o666) & 0o777)
        let pending = try FolderAttributes.apply(fields, of: template, to: upload.file)
        try finish(upload, contents)
        let stored = try contentVersion(of: upload.file)
        try upload.publish(as: template.filename)
        return (pending, stored)
    }

    /// The existing item is the offered one, most likely because the response to an earlier call was lost.
    private func adopt(
        _ name: String, _ status: FileStatus, in directory: FileDescriptor, _ parent: ItemIdentifier,
        _ template: FileProviderItem, _ fields: ItemFields
    ) throws -> ItemChange {
        let pending = try apply(fields, of: template, to: name, in: directory, expecting: status)
        try directory.synchronize(asDirectory: true)
        return try answer(name, in: directory, parent, pending)
    }

    private func notThere(_ template: FileProviderItem) -> ItemChange {
        .refused(reason: "the source has nothing called '\(template.filename)' there")
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
        if let contents { try upload.copy(contents, wish) }
        return upload
    }

    /// The file is visible from here on.
    func finish(_ upload: Upload, _ contents: ContentSource?) throws {
        try contents?.confirm()
        try upload.file.synchronize()
        // Synchronizing may have taken long.
        try wish.check()
    }

    func checkName(_ name: String, in parent: ItemIdentifier) throws {
        if parent == .rootContainer, Folder.isTrashName(name.utf8) {
            throw FileProviderError(.excludedFromSync, "'\(name)' is the name of a trash on the source")
        }
        if let defect = FileProviderItem.defect(ofFilename: name) {
            throw FileProviderError(.cannotSynchronize, defect.description)
        }
        if HiddenName.isOne(name) {
            throw FileProviderError(.excludedFromSync, "the provider needs names like '\(name)' for itself")
        }
    }

    /// - Returns: nil if the name does not exist.
    func status(of name: String, in directory: FileDescriptor) throws(Errno) -> FileStatus? {
        do throws(Errno) {
            return try FileStatus(of: name, in: directory)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
            return nil
        }
    }

    func collision(
        _ name: String, in directory: FileDescriptor, _ parent: ItemIdentifier
    ) -> FileProviderError {
        if let item = try? folder.item(named: name, in: directory, parent: parent) {
            return FileProviderError.filenameCollision(with: item)
        }
        return FileProviderError(.cannotSynchronize, "the source has something called '\(name)' that is no item")
    }

    /// Sets attributes of the file with a name.
    ///
    /// - Parameter status: the expected file; ENOENT if the name refers to another one.
    func apply(
        _ fields: ItemFields, of item: FileProviderItem, to name: String, in directory: FileDescriptor,
        expecting status: FileStatus? = nil
    ) throws(Errno) -> ItemFields {
        let file = try directory.openReference(named: name)
        defer { try? file.close() }
        let now = try FileStatus(of: file)
        if let status, !now.isSameFile(as: status) { throw .noSuchFileOrDirectory }
        return try folder.settingAttributes(of: now.kind) { () throws(Errno) in
            try FolderAttributes.apply(fields, of: item, to: file)
        }
    }

    /// The answer for the file with a name.
    ///
    /// - Parameter stored: the version of the stored content; nil if none was stored. If another program has written
    ///   to the file since, its content must be fetched.
    func answer(
        _ name: String, in directory: FileDescriptor, _ parent: ItemIdentifier, _ pending: ItemFields,
        stored: [UInt8]? = nil
    ) throws -> ItemChange {
        guard let item = try folder.item(named: name, in: directory, parent: parent) else {
            throw Errno.noSuchFileOrDirectory
        }
        // On a network mount the time of a new file may still change.
        let isOther = stored.map { $0 != item.itemVersion.contentVersion } ?? false
        return .applied(item, stillPending: pending, shouldFetchContent: isOther && !folder.isOnNetwork)
    }

    func contentVersion(of file: FileDescriptor) throws(Errno) -> [UInt8] {
        FolderItems.version(of: try FileStatus(of: file)).contentVersion
    }

    /// Whether the existing file is the offered one. Without contents, the size is compared.
    private func isSame(
        _ name: String, _ status: FileStatus, in directory: FileDescriptor, _ template: FileProviderItem,
        _ contents: ContentSource?, _ options: CreateItemOptions
    ) throws -> Bool {
        switch (template.kind, status.kind) {
        case (.directory, .directory): return true
        case (.symbolicLink, .symbolicLink):
            return try directory.linkTarget(named: name).elementsEqual((template.symlinkTargetPath ?? "").utf8)
        case (.file, .regular):
            guard let contents else { return status.size == template.documentSize ?? 0 }
            // Bytes of a known version need not be compared.
            if options.contains(.keepExisting), status.size == contents.size,
                template.itemVersion.contentVersion == FolderItems.version(of: status).contentVersion
            {
                return true
            }
            return try hasContent(name, status, in: directory, contents)
        default: return false
        }
    }

    /// Whether a file has exactly these bytes.
    func hasContent(
        _ name: String, _ status: FileStatus, in directory: FileDescriptor, _ source: ContentSource
    ) throws -> Bool {
        guard status.kind == .regular, status.size == source.size,
            let file = try? directory.openFile(named: name)
        else { return false }
        defer { try? file.close() }
        guard try FileStatus(of: file).isUnchanged(from: status) else { return false }
        let piece = 1 << 20
        var offset: Int64 = 0
        while offset < source.size {
            try wish.check()
            let bytes = try source.read(at: offset, count: piece)
            guard try file.readBytes(at: offset, count: bytes.count) == bytes else { return false }
            offset += Int64(bytes.count)
        }
        try source.confirm()
        return try FileStatus(of: file).isUnchanged(from: status)
    }
}
