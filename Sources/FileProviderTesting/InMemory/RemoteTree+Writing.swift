import FileProvider

/// The contents and options of a change.
struct RemoteWriting: Sendable {
    /// The changed item, and the fields that were not stored.
    typealias Answer = (item: FileProviderItem, pending: ItemFields)

    var options: InMemoryProvider.Options
    /// The uploaded content.
    var content: RemoteContent?
    /// The content that is stored instead.
    var storedContent: RemoteContent?
    var newIdentifier: ItemIdentifier?
}

/// The writing calls on the tree, with the checks of a remote. A call that throws changes nothing.
extension RemoteTree {
    /// - Returns: nil if there is no item to recognize.
    mutating func create(
        _ template: FileProviderItem, _ fields: ItemFields, _ options: CreateItemOptions, _ writing: RemoteWriting
    ) throws -> RemoteWriting.Answer? {
        let sent = template.itemIdentifier
        if let known = made[sent], let item = self[known] {
            if options.contains(.keepExisting) { return (item, []) }
            return (item, differences(template, fields, item, writing))
        }
        let parent = template.parentItemIdentifier
        try checkDirectory(parent)
        try checkName(template.filename)
        let content = content(of: template, writing)
        let pending = fields.subtracting(writing.options.holds).subtracting(.place).subtracting(.contents)
        let isForAny = parent != .trashContainer || options.contains(.keepExisting)
        if isForAny, let there = item(named: template.filename, in: parent) {
            if !options.isDisjoint(with: [.keepExisting, .mayAlreadyExist]), isSame(there, template, content) {
                made[sent] = there.itemIdentifier
                if options.contains(.keepExisting) { return (there, []) }
                update(there.itemIdentifier) { node, _ in
                    node.item.merge(fields.subtracting(pending).subtracting(.place), of: template)
                }
                return (self[there.itemIdentifier] ?? there, pending)
            }
            if writing.options.uniqueNames, parent != .trashContainer {
                throw FileProviderError.filenameCollision(with: there)
            }
        }
        if options.contains(.recognizeOnly) { return nil }
        guard let content else { throw FileProviderError(.cannotSynchronize, "its content was not sent") }
        let stored = writing.storedContent ?? content
        let identifier = add(
            template.filename, in: parent, kind: template.kind, content: stored, identifier: writing.newIdentifier
        ) { item in
            item.symlinkTargetPath = template.symlinkTargetPath
            if item.kind == .file { item.documentSize = stored.size }
            item.merge(fields.subtracting(pending), of: template)
        }
        made[sent] = identifier
        return try answer(.create, identifier, sent, fields.subtracting(pending), pending, size: writing.content?.size)
    }

    mutating func modify(
        _ item: FileProviderItem, _ base: ItemVersion, _ fields: ItemFields, _ writing: RemoteWriting
    ) throws -> RemoteWriting.Answer {
        let sent = item.itemIdentifier
        guard let current = self[sent] else { throw FileProviderError.noSuchItem(sent) }
        let pending = fields.subtracting(writing.options.holds)
        var kept = fields.subtracting(pending)
        var upload: RemoteContent?
        if kept.contains(.contents) {
            guard current.kind == .file, let content = content(of: item, writing) else {
                throw FileProviderError(.cannotSynchronize, "its content was not sent")
            }
            let isThere = writing.options.recognizesEqualUploads && isEqual(content, self.content(of: sent))
            guard isThere || base.contentVersion == current.itemVersion.contentVersion else {
                throw FileProviderError(.localVersionConflictingWithServer, item: current)
            }
            if isThere { kept.remove(.contents) } else { upload = writing.storedContent ?? content }
        }
        try checkPlace(of: item, current, kept, writing)
        if let upload { write(upload, to: sent) }
        let parent = kept.contains(.parentItemIdentifier) ? item.parentItemIdentifier : current.parentItemIdentifier
        if parent != current.parentItemIdentifier { move(sent, to: parent) }
        update(sent) { node, _ in node.item.merge(kept, of: item) }
        let identifier = writing.newIdentifier ?? sent
        if identifier != sent { giveIdentifier(identifier, to: sent) }
        return try answer(
            .modify, identifier, sent, kept, pending, size: kept.contains(.contents) ? writing.content?.size : nil)
    }

    mutating func delete(_ identifier: ItemIdentifier, _ base: ItemVersion, _ options: DeleteItemOptions) throws {
        guard let item = self[identifier] else { return }
        if options.contains(.onlyFromTrash), !isInTrash(item) {
            throw FileProviderError.wasRestored(identifier, item: item)
        }
        if item.kind == .file, item.itemVersion.contentVersion != base.contentVersion {
            throw FileProviderError.deletionRejected(of: item)
        }
        if !options.contains(.recursive), !items(in: identifier).isEmpty {
            throw FileProviderError(.directoryNotEmpty, item: item)
        }
        delete(identifier)
        applied.append(
            AppliedChange(kind: .delete, identifier: identifier, sentIdentifier: identifier, fields: [], size: nil))
    }

    private func isInTrash(_ item: FileProviderItem) -> Bool {
        var parent = item.parentItemIdentifier
        while parent != .trashContainer {
            guard let above = self[parent], parent != .rootContainer else { return false }
            parent = above.parentItemIdentifier
        }
        return true
    }

    private mutating func answer(
        _ kind: ProviderCallKind, _ identifier: ItemIdentifier, _ sent: ItemIdentifier, _ fields: ItemFields,
        _ pending: ItemFields, size: Int64?
    ) throws -> RemoteWriting.Answer {
        guard let item = self[identifier] else { throw FileProviderError.noSuchItem(identifier) }
        applied.append(
            AppliedChange(kind: kind, identifier: identifier, sentIdentifier: sent, fields: fields, size: size))
        return (item, pending)
    }

    private func item(named name: String, in directory: ItemIdentifier) -> FileProviderItem? {
        items(in: directory).first { $0.filename.utf8.elementsEqual(name.utf8) }
    }

    private func checkDirectory(_ identifier: ItemIdentifier) throws {
        if identifier == .trashContainer, hasTrash { return }
        guard self[identifier]?.kind == .directory else { throw FileProviderError.noSuchItem(identifier) }
    }

    private func checkName(_ name: String) throws {
        if let defect = FileProviderItem.defect(ofFilename: name) {
            throw FileProviderError(.cannotSynchronize, defect.description)
        }
    }

    private func checkPlace(
        of item: FileProviderItem, _ current: FileProviderItem, _ fields: ItemFields, _ writing: RemoteWriting
    ) throws {
        guard !fields.isDisjoint(with: .place) else { return }
        let name = fields.contains(.filename) ? item.filename : current.filename
        let parent = fields.contains(.parentItemIdentifier) ? item.parentItemIdentifier : current.parentItemIdentifier
        try checkName(name)
        try checkDirectory(parent)
        if parent == .trashContainer { return }
        var above = parent
        while above != .rootContainer, let next = self[above] {
            if above == item.itemIdentifier {
                throw FileProviderError(.cannotSynchronize, "a directory cannot come below itself", item: current)
            }
            above = next.parentItemIdentifier
        }
        if writing.options.uniqueNames, let there = self.item(named: name, in: parent),
            there.itemIdentifier != item.itemIdentifier
        {
            throw FileProviderError.filenameCollision(with: there)
        }
    }

    /// The content of an uploaded item; nil for a file without contents.
    private func content(of item: FileProviderItem, _ writing: RemoteWriting) -> RemoteContent? {
        if let content = writing.content { return content }
        return item.kind == .file && item.documentSize ?? 0 > 0 ? nil : .bytes([])
    }

    /// Whether an existing item is the offered one. Without contents, the size is compared.
    private func isSame(_ there: FileProviderItem, _ template: FileProviderItem, _ content: RemoteContent?) -> Bool {
        guard there.kind == template.kind else { return false }
        switch there.kind {
        case .directory: return true
        case .symbolicLink: return there.symlinkTargetPath == template.symlinkTargetPath
        case .file:
            guard let content else { return there.documentSize == template.documentSize }
            return isEqual(content, self.content(of: there.itemIdentifier))
        }
    }

    private func isEqual(_ one: RemoteContent, _ other: RemoteContent?) -> Bool {
        guard let other, one.size == other.size else { return false }
        return one[0..<one.size] == other[0..<other.size]
    }

    /// The fields of an offered template that differ from the remote.
    private func differences(
        _ template: FileProviderItem, _ fields: ItemFields, _ item: FileProviderItem, _ writing: RemoteWriting
    ) -> ItemFields {
        var pending = fields.subtracting(writing.options.holds).subtracting(.place).subtracting(.contents)
        if let content = writing.content, !isEqual(content, self.content(of: item.itemIdentifier)) {
            pending.insert(.contents)
        }
        for field in fields.subtracting(.contents).names.compactMap(ItemFields.init(name:)) {
            var merged = item
            merged.merge(field, of: template)
            if merged != item { pending.insert(field) }
        }
        return pending
    }

    private mutating func giveIdentifier(_ new: ItemIdentifier, to old: ItemIdentifier) {
        guard var node = nodes.removeValue(forKey: old) else { return }
        node.item.itemIdentifier = new
        nodes[new] = node
        let parent = node.item.parentItemIdentifier
        children[parent] = children[parent]?.map { $0 == old ? new : $0 }
        for child in children[old] ?? [] { nodes[child]?.item.parentItemIdentifier = new }
        children[new] = children.removeValue(forKey: old)
        for (template, item) in made where item == old { made[template] = new }
        history += [old, new]
    }
}

extension ItemFields {
    static let place: ItemFields = [.filename, .parentItemIdentifier]
}

extension FileProviderItem {
    /// Copies fields of another item. Nil fields stay unchanged.
    mutating func merge(_ fields: ItemFields, of other: FileProviderItem) {
        if fields.contains(.filename) { filename = other.filename }
        if fields.contains(.parentItemIdentifier) { parentItemIdentifier = other.parentItemIdentifier }
        if fields.contains(.lastUsedDate) { lastUsedDate = other.lastUsedDate ?? lastUsedDate }
        if fields.contains(.tagData) { tagData = other.tagData ?? tagData }
        if fields.contains(.favoriteRank) { favoriteRank = other.favoriteRank ?? favoriteRank }
        if fields.contains(.creationDate) { creationDate = other.creationDate ?? creationDate }
        if fields.contains(.contentModificationDate) {
            contentModificationDate = other.contentModificationDate ?? contentModificationDate
        }
        if !fields.isDisjoint(with: [.permissions, .fileSystemFlags]) {
            permissions = other.permissions ?? permissions
        }
        if fields.contains(.extendedAttributes) {
            extendedAttributes = other.extendedAttributes ?? extendedAttributes
        }
        if fields.contains(.ownership) {
            owner = other.owner ?? owner
            group = other.group ?? group
        }
    }
}
