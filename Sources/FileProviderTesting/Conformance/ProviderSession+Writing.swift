import FileProvider
import Foundation

/// Writing calls, as the system makes them. The answers are recorded in the manager.
extension ProviderSession {
    /// The result of a change.
    public struct Stored: Sendable {
        /// The item as the provider returned it.
        public var item: FileProviderItem
        /// The fields that were not stored.
        public var stillPending: ItemFields
        /// Whether the remote has other bytes than were sent.
        public var shouldFetchContent: Bool
    }

    /// The reason of a refused item.
    public struct Refusal: Error, Hashable, Sendable {
        /// The sentence of the provider.
        public var reason: String

        /// A refusal with its reason.
        public init(reason: String) {
            self.reason = reason
        }
    }

    /// The template of a new item, with a temporary identifier.
    public static func template(
        _ name: String, in parent: ItemIdentifier = .rootContainer, kind: ItemKind = .file, size: Int64? = nil,
        target: String? = nil
    ) -> FileProviderItem {
        FileProviderItem(
            itemIdentifier: ItemIdentifier("local-\(UUID().uuidString)"), parentItemIdentifier: parent, filename: name,
            kind: kind, itemVersion: .beforeFirstSync, documentSize: kind == .file ? size ?? 0 : nil,
            symlinkTargetPath: target)
    }

    /// Creates an item.
    ///
    /// - Parameters:
    ///   - template: the item, as ``template(_:in:kind:size:target:)`` makes it.
    ///   - content: the bytes of a file; nil for none.
    ///   - fields: the fields to set besides name, parent and content.
    ///   - options: the options of the call.
    /// - Throws: ``Refusal``; ``ConformanceFailure`` for an invalid answer; the provider's errors.
    @discardableResult
    public func create(
        _ template: FileProviderItem, content: [UInt8]? = nil, fields: ItemFields = [],
        options: CreateItemOptions = []
    ) async throws -> Stored {
        let content = try content.map { try TestContent($0) }
        return try await create(template, source: content?.source, fields: fields, options: options)
    }

    /// Creates an item with a content source that may fail to confirm.
    ///
    /// - Throws: ``Refusal``; ``ConformanceFailure`` for an invalid answer; the provider's errors.
    @discardableResult
    public func create(
        _ template: FileProviderItem, source: ContentSource?, fields: ItemFields = [],
        options: CreateItemOptions = []
    ) async throws -> Stored {
        var template = template
        if let source { template.documentSize = source.size }
        let all = fields.union([.filename, .parentItemIdentifier]).union(source == nil ? [] : .contents)
        let change = try await provider.createItem(
            basedOn: template, fields: all, contents: source, options: options, request: request)
        return try learn(change, insteadOf: nil)
    }

    /// Creates a symbolic link.
    ///
    /// - Returns: nil if the remote does not support links.
    /// - Throws: as ``create(_:content:fields:options:)``.
    public func createLink(
        _ name: String, in parent: ItemIdentifier = .rootContainer, to target: String
    ) async throws -> Stored? {
        do {
            return try await create(Self.template(name, in: parent, kind: .symbolicLink, target: target))
        } catch is Refusal {
            return nil
        } catch let error as FileProviderError where error.code == .excludedFromSync {
            return nil
        }
    }

    /// Changes an item; its version is the base version by default.
    ///
    /// - Throws: ``Refusal``; ``ConformanceFailure`` for an invalid answer; the provider's errors.
    @discardableResult
    public func modify(
        _ item: FileProviderItem, _ fields: ItemFields, content: [UInt8]? = nil, base: ItemVersion? = nil
    ) async throws -> Stored {
        let content = try content.map { try TestContent($0) }
        return try await modify(item, fields, source: content?.source, base: base)
    }

    /// Changes an item with a content source that may fail to confirm.
    ///
    /// - Throws: ``Refusal``; ``ConformanceFailure`` for an invalid answer; the provider's errors.
    @discardableResult
    public func modify(
        _ item: FileProviderItem, _ fields: ItemFields, source: ContentSource?, base: ItemVersion? = nil
    ) async throws -> Stored {
        var item = item
        if let source { item.documentSize = source.size }
        let all = source == nil ? fields : fields.union(.contents)
        let change = try await provider.modifyItem(
            item, baseVersion: base ?? item.itemVersion, changedFields: all, contents: source,
            options: .failOnConflict, request: request)
        return try learn(change, insteadOf: item.itemIdentifier)
    }

    /// Deletes an item; its version is the base version.
    ///
    /// - Throws: the provider's errors.
    public func delete(
        _ item: FileProviderItem, recursively: Bool = false, onlyFromTrash: Bool = false
    ) async throws {
        var options: DeleteItemOptions = recursively ? .recursive : []
        if onlyFromTrash { options.insert(.onlyFromTrash) }
        try await provider.deleteItem(
            identifier: item.itemIdentifier, baseVersion: item.itemVersion, options: options, request: request)
        manager.forget(item.itemIdentifier)
    }

    private func learn(_ change: ItemChange, insteadOf identifier: ItemIdentifier?) throws -> Stored {
        switch change {
        case .refused(let reason): throw Refusal(reason: reason)
        case .applied(let item, let pending, let shouldFetch):
            try expect(item.defect == nil, "'\(item.filename)' cannot be shown: \(item.defect?.description ?? "")")
            if let identifier, identifier != item.itemIdentifier { manager.forget(identifier) }
            manager.learn([item])
            return Stored(item: item, stillPending: pending, shouldFetchContent: shouldFetch)
        }
    }
}
