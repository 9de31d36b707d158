import FileProvider
import Syscalls
import SystemPackage

/// The writing calls. Every change is atomic, and durable when the call returns.
extension DirectoryProvider {
    package func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        try await write([template.parentItemIdentifier], template.filename, contents) { [watcher] writer, contents in
            let change = try writer.create(template, fields, contents: contents, options: options)
            // The system does not list a directory that it has created, so it is watched from here on.
            if case .applied(let item, _, _) = change, item.kind == .directory, !item.isTrashed, let watcher {
                let parent = try writer.folder.openDirectory(item.parentItemIdentifier)
                defer { try? parent.close() }
                let directory = try parent.openDirectory(named: item.filename)
                defer { try? directory.close() }
                if options.contains(.keepExisting) {
                    // An existing directory will be compared or listed.
                    watcher.watch(directory, as: item.itemIdentifier)
                } else {
                    watcher.watch(made: directory, as: item.itemIdentifier)
                }
            }
            return change
        }
    }

    package func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        try await write([item.itemIdentifier, item.parentItemIdentifier], item.filename, contents) { writer, contents in
            try writer.modify(item, base: baseVersion, changedFields, contents: contents)
        }
    }

    package func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        try await write([identifier], nil, nil) { writer, _ in
            try writer.delete(identifier, base: baseVersion, options)
        }
    }

    /// Runs a change. A cancelled call returns at once while its body may continue.
    ///
    /// - Parameter items: those that the change is made at; the first is the subject of errors.
    private func write<Value: Sendable>(
        _ items: [ItemIdentifier], _ name: String?, _ contents: ContentSource?,
        _ body: @escaping @Sendable (FolderWriter, ContentSource?) throws -> Value
    ) async throws -> Value {
        // File systems copy at their own rate.
        if let contents { try await contents.pace(contents.size) }
        return try await folder.calls.run { [folder] cancellation in
            let writer = FolderWriter(folder: folder, cancellation: cancellation)
            do {
                let directories = folder.readOnlyDirectories
                if directories.isRoot { return try body(writer, contents) }
                let root = try folder.openRoot()
                defer { try? root.close() }
                let paths = items.compactMap { folder.path(of: $0) }
                // A body that is denied has made nothing yet.
                return try directories.writing(below: root, along: paths, isGranting: false) {
                    do {
                        return try body(writer, contents)
                    } catch  where Folder.isDenied(error) {
                        return try directories.writing(below: root, along: paths) { try body(writer, contents) }
                    }
                }
            } catch {
                let identifier = items.first ?? .rootContainer
                // A directory of another user denies access: the item waits.
                if Folder.isDenied(error) { throw folder.writeFailure(.permissionDenied, of: identifier, named: name) }
                guard let error = error as? Errno else { throw error }
                throw folder.writeFailure(error, of: identifier, named: name)
            }
        }
    }
}
