import FileProvider
import FileProviderPaths

/// What a program can do. A missing field is false.
struct ProgramFeatures: Codable, Hashable, Sendable {
    var writing: Bool?
    var ranges: Bool?
    /// The program checks `ifAbsent`, `ifTag` and `ifEmpty` itself.
    var conditions: Bool?
    var symbolicLinks: Bool?
    var modified: Bool?
    var permissions: Bool?
    /// An equal tag means equal bytes.
    var strongTags: Bool?
    /// A tag depends on the bytes alone.
    var contentTags: Bool?
    var thumbnails: Bool?
    /// `progress` of an upload says how much was sent.
    var uploadProgress: Bool?
    var quota: Bool?
    /// The best number of concurrent calls.
    var calls: Int?

    // Of the level items, with the names of ``ProviderFeatures``.
    var changeFeed: Bool?
    var trash: Bool?
    var documentEnumeration: Bool?
    var datesMakeVersions: Bool?
    var directoryVersionsCoverTrees: Bool?

    private var concurrentCalls: Int { min(max(calls ?? 4, 1), 64) }

    /// On the level items.
    var features: ProviderFeatures {
        var features = ProviderFeatures(
            partialContentFetching: ranges ?? false, changeFeed: changeFeed ?? false, writing: writing ?? false,
            trash: trash ?? false && writing ?? false, conditionalWrites: conditions ?? false,
            documentEnumeration: documentEnumeration ?? false, datesMakeVersions: datesMakeVersions ?? false,
            directoryVersionsCoverTrees: directoryVersionsCoverTrees ?? false, concurrentCalls: concurrentCalls)
        features.thumbnails = thumbnails ?? false
        return features
    }

    /// On the level paths.
    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.isWritable = writing ?? false
        traits.readsRanges = ranges ?? false
        traits.checksConditions = conditions ?? false
        traits.checksEmptiness = conditions ?? false
        traits.hasSymbolicLinks = symbolicLinks ?? false
        traits.storesModificationDates = modified ?? false
        traits.storesPermissions = permissions ?? false
        traits.tagsAreOfContent = contentTags ?? false
        traits.concurrentCalls = concurrentCalls
        return traits
    }
}
