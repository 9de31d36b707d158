import FileProvider

/// A remote that knows its items by path alone (WebDAV, S3, SFTP), as ``PathAddressedProvider`` needs it: it gets paths and
/// returns entries, and stores nothing of the tree.
///
/// All calls may be concurrent, and are cancelled by cancelling their task. Items that a remote makes for itself, such as
/// uploads in progress, have a ``HiddenName``, and are listed like all others. Errors are ``FileProviderError``s:
/// `notAuthenticated`, `serverUnreachable`, `timedOut`, `malformedResponse`, `insufficientQuota`, `fileReadNoPermission`,
/// and those that a call names. An idempotent call has been retried already when it throws.
package protocol PathRemote: Sendable {
    /// What the remote can do, as far as it is known by now: a remote that has not been reached yet has the usual traits.
    var traits: RemoteTraits { get }

    /// The last call.
    func close() async

    /// - Throws: `noSuchItem`.
    func entry(at path: RemotePath) async throws -> RemoteEntry

    /// A part of a directory's entries, in any order, at most `limit`. An incomplete listing throws, at the latest with its last
    /// part.
    ///
    /// - Parameter token: nil for the first part, else the token of the part before.
    /// - Throws: `noSuchItem`, also for another item than a directory; `pageExpired` when the listing has to start again.
    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing

    /// The rest of a listing is not wanted.
    func endListing(_ token: [UInt8])

    /// Everything below a directory, level by level or key by key, when `traits.listsTrees`.
    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing

    /// Writes a file's content, or a range of it, into a sink as it arrives; continues by itself after a connection broke.
    ///
    /// - Parameter tag: the content that is wanted; nil for any.
    /// - Returns: the entry that has the bytes.
    /// - Throws: `versionNoLongerAvailable`, `noSuchItem`, `malformedResponse` for too few or too many bytes; what the
    ///   sink throws.
    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry

    /// Makes a file, or replaces its content. No client ever sees a part of it.
    ///
    /// - Throws: ``RemoteConditionFailure`` with the present entry when the condition does not hold; `noSuchItem` when the
    ///   directory is missing; what ``ContentSource`` throws.
    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry

    /// - Throws: ``RemoteConditionFailure`` with the present entry; `noSuchItem` when the parent is missing.
    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry

    /// - Throws: `featureUnsupported` where there are none, and as ``makeDirectory(at:attributes:)``.
    func makeSymbolicLink(at path: RemotePath, to target: String, attributes: RemoteAttributes) async throws
        -> RemoteEntry

    /// Moves an item, a directory with all below it, to a name that is free.
    ///
    /// - Throws: ``RemoteConditionFailure`` with the entry that has the name; `noSuchItem` for the item or the new parent.
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry

    /// Stores those of the attributes that can be stored.
    ///
    /// - Returns: the entry, and the fields that could not be stored.
    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields)

    /// Deletes a file, or a directory with all below it. Succeeds when it was removed already.
    ///
    /// - Throws: ``RemoteConditionFailure`` with the present entry when the condition does not hold.
    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws

    /// Free and total bytes, where the remote says so.
    func quota() async throws -> RemoteQuota?
}

extension PathRemote {
    package func endListing(_ token: [UInt8]) {}

    /// Calls a closure with the listing of a directory, part by part, until it returns false.
    ///
    /// - Throws: as ``entries(in:from:limit:)``.
    package func visitListing(
        of path: RemotePath, limit: Int = 1000, _ visit: (RemoteListing) async throws -> Bool
    ) async throws {
        var token: [UInt8]?
        var check = CycleCheck<[UInt8]>()
        repeat {
            let part = try await entries(in: path, from: token, limit: limit)
            token = part.next
            do {
                try check.check(token, of: "'/\(path.names.joined(separator: "/"))'")
                guard try await !visit(part) else { continue }
            } catch {
                if let token { endListing(token) }
                throw error
            }
            if let token { endListing(token) }
            return
        } while token != nil
    }
}

/// The names from the root of the domain down to an item; none for the root itself.
package struct RemotePath: Hashable, Sendable {
    package var names: [String]

    package init(_ names: [String]) {
        self.names = names
    }

    package static let root = RemotePath([])

    package var name: String? { names.last }
    package var parent: RemotePath { RemotePath(names.dropLast()) }

    package func appending(_ name: String) -> RemotePath { RemotePath(names + [name]) }

    /// Whether it leads through another path, and further.
    package func isBelow(_ other: RemotePath) -> Bool {
        names.count > other.names.count && RemotePath(Array(names.prefix(other.names.count))) == other
    }

    /// By bytes: two Unicode forms of one text are two names.
    package static func == (one: RemotePath, other: RemotePath) -> Bool {
        one.names.count == other.names.count
            && zip(one.names, other.names).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
    }

    package func hash(into hasher: inout Hasher) {
        for name in names {
            for byte in name.utf8 { hasher.combine(byte) }
            hasher.combine(UInt8(0))
        }
    }
}

/// An item as a remote describes it.
package struct RemoteEntry: Hashable, Sendable {
    /// Empty for the root.
    package var name: String
    package var kind: ItemKind
    /// Changes when the bytes do, as far as the remote can tell; for a directory, when something in it does, where the
    /// remote has such tags.
    package var tag: [UInt8]
    /// Whether an equal tag means equal bytes. A tag made of a second-granular date and a size does not say so.
    package var isTagStrong: Bool
    /// Whether the file may still get other bytes without another tag, because it was written just before the request.
    package var isTagUnsettled = false
    /// The remote's own identifier, stable through renames, where it has one.
    package var stableIdentifier: String?
    /// Nil for anything but a file.
    package var size: Int64?
    package var attributes: RemoteAttributes
    /// Whether the remote permits changes; nil where it does not say.
    package var isWritable: Bool?
    /// Whether the remote's trash, where it has one, keeps it when it is deleted.
    package var isTrashable = true

    package init(
        name: String, kind: ItemKind, tag: [UInt8], isTagStrong: Bool, stableIdentifier: String? = nil,
        size: Int64? = nil, attributes: RemoteAttributes = RemoteAttributes(), isWritable: Bool? = nil
    ) {
        self.name = name
        self.kind = kind
        self.tag = tag
        self.isTagStrong = isTagStrong
        self.stableIdentifier = stableIdentifier
        self.size = size
        self.attributes = attributes
        self.isWritable = isWritable
    }
}

/// The attributes of an item; nil for one that is unknown, or not to be changed.
package struct RemoteAttributes: Hashable, Sendable {
    package var contentModificationDate: FileTimestamp?
    package var creationDate: FileTimestamp?
    /// The lower twelve bits of a POSIX mode.
    package var permissions: UInt16?
    package var symbolicLinkTarget: String?
    /// In the `user.` namespace, by their name without it.
    package var extendedAttributes: [String: [UInt8]]?

    package init(
        contentModificationDate: FileTimestamp? = nil, creationDate: FileTimestamp? = nil, permissions: UInt16? = nil,
        symbolicLinkTarget: String? = nil, extendedAttributes: [String: [UInt8]]? = nil
    ) {
        self.contentModificationDate = contentModificationDate
        self.creationDate = creationDate
        self.permissions = permissions
        self.symbolicLinkTarget = symbolicLinkTarget
        self.extendedAttributes = extendedAttributes
    }
}

/// A part of a directory's listing.
package struct RemoteListing: Hashable, Sendable {
    package var entries: [RemoteEntry]
    /// The token of the next part; nil at the end.
    package var next: [UInt8]?
    /// Whether the directory holds an item that cannot be an entry: then it is not empty, even without entries.
    package var leavesOut = false

    package init(entries: [RemoteEntry], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}

/// A part of the tree below a directory, in the order of the paths: all of a directory comes before its successor.
package struct RemoteTreeListing: Sendable {
    package var entries: [(parent: RemotePath, entry: RemoteEntry)]
    package var next: [UInt8]?

    package init(entries: [(parent: RemotePath, entry: RemoteEntry)], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}

/// The condition on which a change is made.
package enum RemoteCondition: Hashable, Sendable {
    /// In any case.
    case always
    /// Nothing has the name.
    case absent
    /// The content is the one with this tag. A remote that cannot make a change conditional looks first, and says so in
    /// its traits.
    case unchanged(tag: [UInt8])
    /// The directory that is to be deleted holds nothing but hidden names. A remote that deletes it with one request
    /// need not look; see ``RemoteTraits/checksEmptiness``.
    case empty

    /// Whether it is that the content is the one with this tag.
    package func isOf(_ tag: [UInt8]?) -> Bool { tag.map { self == .unchanged(tag: $0) } ?? false }
}

/// A condition did not hold.
package struct RemoteConditionFailure: Error, Hashable, Sendable {
    /// The present entry; nil when there is none.
    package var present: RemoteEntry?

    package init(present: RemoteEntry?) {
        self.present = present
    }
}

/// What a remote can do.
package struct RemoteTraits: Hashable, Sendable {
    package var isWritable = true
    package var readsRanges = true
    /// Conditions are checked by the remote itself, in one step with the change.
    package var checksConditions = false
    /// The remote itself checks that a directory that is to be deleted is empty.
    package var checksEmptiness = false
    package var hasSymbolicLinks = false
    package var storesModificationDates = false
    package var storesPermissions = false
    package var storesExtendedAttributes = false
    /// Whole trees can be listed without a call for each directory.
    package var listsTrees = false
    /// A file's tag depends on its bytes alone: equal files have equal tags.
    package var tagsAreOfContent = false
    /// A directory's tag changes when something below it does, at any depth.
    package var directoryTagsCoverTrees = false
    /// Names that begin with a dot are listed. Where they are not, the known ones are requested one by one.
    package var listsHiddenNames = true
    /// Deleted items are kept in a trash, and can be restored: a ``TrashingRemote``.
    package var hasTrash = false
    /// The best number of concurrent calls. Read once, when the remote was made.
    package var concurrentCalls = 16
    /// The longest name, in bytes; nil for Linux' own limit.
    package var longestName: Int?
    /// What the user should know of this server, a sentence each.
    package var peculiarities: [String] = []

    package init() {}
}
