import FileProvider

// The messages of the level items of Docs/Protocol.md.

struct ItemParameters: Encodable, Sendable {
    var itemIdentifier: String
    /// A ``FileProviderRequest/Reason``.
    var reason: String

    init(_ identifier: ItemIdentifier, _ request: FileProviderRequest) {
        itemIdentifier = identifier.rawValue
        reason = request.reason.rawValue
    }
}

struct ItemResult: Decodable, Sendable {
    var item: ProgramItem
}

struct EnumerateParameters: Encodable, Sendable {
    var container: String
    var page: String?
    var anchor: String?
    var limit: Int?
    var reason: String

    init(_ container: ItemIdentifier, _ request: FileProviderRequest) {
        self.container = container.rawValue
        reason = request.reason.rawValue
    }
}

struct ItemPageResult: Decodable, Sendable {
    var items: [ListElement<ProgramItem>]
    var next: String?
}

struct ItemChangesResult: Decodable, Sendable {
    var updated: [ListElement<ProgramItem>]
    var deleted: [String]
    var anchor: String
    var moreComing: Bool?
}

struct AnchorResult: Decodable, Sendable {
    var anchor: String?
}

struct FetchParameters: Encodable, Sendable {
    var itemIdentifier: String
    var contentVersion: String?
    var offset: Int64
    /// Nil for all.
    var length: Int64?
    var into: String
    var reason: String
}

struct FetchThumbnailParameters: Encodable, Sendable {
    var itemIdentifier: String
    var width: Int
    var height: Int
    var into: String
    var reason: String
}

/// The parameters of `createItem` and `modifyItem`.
struct ItemChangeParameters: Encodable, Sendable {
    var item: ProgramItem
    var baseVersion: ProgramVersion?
    var fields: [String]
    /// The file with the contents; nil if they are not part of the change.
    var from: String?
    var options: [String]
}

struct ItemChangeResult: Decodable, Sendable {
    /// Missing if the change is refused.
    var item: ProgramItem?
    var stillPending: [String]?
    var shouldFetchContent: Bool?
    var refused: String?
}

struct DeleteItemParameters: Encodable, Sendable {
    var itemIdentifier: String
    var baseVersion: ProgramVersion
    var options: [String]
}

struct ProgramVersion: Encodable, Hashable, Sendable {
    var contentVersion: String?
    var metadataVersion: String?

    init(_ version: ItemVersion) {
        contentVersion = version.contentVersion.text
        metadataVersion = version.metadataVersion.text
    }
}

extension CreateItemOptions {
    var names: [String] {
        let all: [(CreateItemOptions, String)] = [
            (.mayAlreadyExist, "mayAlreadyExist"), (.deletionConflicted, "deletionConflicted"),
            (.keepExisting, "keepExisting"), (.recognizeOnly, "recognizeOnly"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}

extension ModifyItemOptions {
    var names: [String] {
        (contains(.mayAlreadyExist) ? ["mayAlreadyExist"] : []) + (contains(.failOnConflict) ? ["failOnConflict"] : [])
    }
}

extension DeleteItemOptions {
    var names: [String] {
        (contains(.recursive) ? ["recursive"] : []) + (contains(.onlyFromTrash) ? ["onlyFromTrash"] : [])
    }
}
