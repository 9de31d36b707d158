import FileProvider

/// A remote that knows its items by path alone (WebDAV, S3, SFTP), as ``PathAddressedProvider`` needs it: paths in, entries
/// out. It keeps nothing of the tree itself.
///
/// All calls may be concurrent, and are cancelled by cancelling their task. What a remote needs for itself, such as files on
/// their way in, has a ``HiddenName``, and is listed like everything else. Errors are ``FileProviderError``s:
/// `notAuthenticated`, `serverUnreachable`, `timedOut`, `malformedResponse`, `insufficientQuota`, `fileReadNoPermission`,
/// and those that a call names. A call that can be made again without harm has been made again already, for as long as
/// that made sense, when it throws.
package protocol PathRemote: Sendable {
    /// What the remote can do, as far as it has been found out by now: a remote that could not be reached yet says what is
    /// usual.
    var traits: RemoteTraits { get }

    /// The last call.
    func close() async

    /// - Throws: `noSuchItem`.
    func entry(at path: RemotePath) async throws -> RemoteEntry

    /// A part of what a directory holds, in any order: what is there by now, no more than `limit`. A listing that ends early
    /// throws, at the latest with its last part: it is never cut short.
    ///
    /// - Parameter token: nil for the first part, else what the part before gave.
    /// - Throws: `noSuchItem`, also for what is no directory; `pageExpired` when the listing has to start again.
    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing

    /// Nobody asks for what follows a token.
    func endListing(_ token: [UInt8])

    /// Everything below a directory, level by level or key by key, when `traits.listsTrees`.
    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing

    /// Writes a file's content, or a range of it, into a sink as it arrives; goes on by itself where a connection broke.
    ///
    /// - Parameter tag: the content that is wanted; nil for any.
    /// - Returns: the entry whose bytes were given.
    /// - Throws: `versionNoLongerAvailable`, `noSuchItem`, `malformedResponse` for too few or too many bytes; what the
    ///   sink throws.
    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry

    /// Makes a file, or replaces its content, so that nobody ever sees a part of it.
    ///
    /// - Throws: ``RemoteConditionFailure`` with what is there when the condition does not hold; `noSuchItem` when the
    ///   directory is missing; what ``ContentSource`` throws.
    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry

    /// - Throws: ``RemoteConditionFailure`` with what is there; `noSuchItem` when the parent is missing.
    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry

    /// - Throws: `featureUnsupported` where there are none, and as ``makeDirectory(at:attributes:)``.
    func makeSymbolicLink(at path: RemotePath, to target: String, attributes: RemoteAttributes) async throws
        -> RemoteEntry

    /// Moves an item, a directory with all below it, to a name that is free.
    ///
    /// - Throws: ``RemoteConditionFailure`` with what has the name; `noSuchItem` for the item or the new parent.
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry

    /// Stores what of the attributes can be stored.
    ///
    /// - Returns: the entry, and the fields that could not be stored.
    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields)

    /// Deletes a file, or a directory with all below it. What is gone already is a success.
    ///
    /// - Throws: ``RemoteConditionFailure`` with what is there when the condition does not hold.
    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws

    /// Free and total bytes, where the remote says so.
    func quota() async throws -> RemoteQuota?
}

extension PathRemote {
    package func endListing(_ token: [UInt8]) {}

    /// Calls a closure with all that a directory holds, part by part, until it returns false.
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

/// What a remote says of an item.
package struct RemoteEntry: Hashable, Sendable {
    /// Empty for the root.
    package var name: String
    package var kind: ItemKind
    /// Changes when the bytes do, as well as the remote can tell; for a directory, when something in it does, where the
    /// remote says such a thing.
    package var tag: [UInt8]
    /// Whether an equal tag means equal bytes. A tag made of a second-granular date and a size does not say so.
    package var isTagStrong: Bool
    /// Whether the file may still get other bytes without another tag, because it was written so shortly before it was
    /// looked at.
    package var isTagUnsettled = false
    /// The remote's own identifier, stable through renames, where it has one.
    package var stableIdentifier: String?
    /// Of a file.
    package var size: Int64?
    package var attributes: RemoteAttributes
    /// Whether it may be changed, as the remote says; nil where it says nothing.
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

/// What an item has besides its content; nil is not known, or not to be changed.
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
    /// Where it goes on; nil at the end.
    package var next: [UInt8]?
    /// Whether the directory holds something that cannot be an entry: it is not empty, whatever the entries are.
    package var leavesOut = false

    package init(entries: [RemoteEntry], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}

/// A part of what lies below a directory, in the order of the paths: all of a directory comes before what follows it.
package struct RemoteTreeListing: Sendable {
    package var entries: [(parent: RemotePath, entry: RemoteEntry)]
    package var next: [UInt8]?

    package init(entries: [(parent: RemotePath, entry: RemoteEntry)], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}

/// On what a change is made.
package enum RemoteCondition: Hashable, Sendable {
    /// Whatever is there.
    case always
    /// Nothing has the name.
    case absent
    /// The content is the one with this tag. A remote that cannot make a change conditional looks first, and says so in
    /// its traits.
    case unchanged(tag: [UInt8])
    /// The directory, which is to be deleted, holds nothing but what is hidden. A remote that deletes it with one request
    /// need not look; see ``RemoteTraits/checksEmptiness``.
    case empty

    /// Whether it is that the content is the one with this tag.
    package func isOf(_ tag: [UInt8]?) -> Bool { tag.map { self == .unchanged(tag: $0) } ?? false }
}

/// A condition did not hold.
package struct RemoteConditionFailure: Error, Hashable, Sendable {
    /// What is there instead; nil when nothing is.
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
    /// A directory that is to be deleted if it is empty need not be looked at before: the remote does that itself.
    package var checksEmptiness = false
    package var hasSymbolicLinks = false
    package var storesModificationDates = false
    package var storesPermissions = false
    package var storesExtendedAttributes = false
    /// Whole trees can be listed without a call for each directory.
    package var listsTrees = false
    /// A file's tag is made of its bytes alone: what is alike has the same.
    package var tagsAreOfContent = false
    /// A directory's tag changes when something below it does, at any depth.
    package var directoryTagsCoverTrees = false
    /// Names that begin with a dot are listed. Where they are not, those that are known are looked up one by one.
    package var listsHiddenNames = true
    /// What is deleted lies in a trash, and can be brought back: a ``TrashingRemote``.
    package var hasTrash = false
    /// How many calls suit it at once. Asked once, when the remote was made.
    package var concurrentCalls = 16
    /// The longest name that it takes, in bytes; nil for what Linux takes.
    package var longestName: Int?
    /// What the user should know of this server, a sentence each.
    package var peculiarities: [String] = []

    package init() {}
}
