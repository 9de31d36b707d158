import FileProvider

extension InMemoryProvider {
    /// How an in-memory remote behaves.
    public struct Options: Hashable, Sendable {
        /// Whether a range of a file can be fetched.
        public var partialContentFetching = true
        /// Whether the working set reports changes.
        public var changeFeed = true
        /// The maximum number of items per page; nil for the number that the system suggests.
        public var pageSize: Int?
        /// The number of bytes that a fetch delivers at once.
        public var chunkSize: Int64 = 1 << 20
        /// Whether the version of content is certain before the first byte of a fetch, and not only at its end.
        public var confirmsVersions = false
        /// The number of bytes after each of which a fetch confirms the version of all that it has written; nil if it never does.
        public var confirmationInterval: Int64?
        /// The delay before each chunk of a fetch or an upload.
        public var chunkDelay = Duration.zero
        /// Whether files have enumerators.
        public var documentEnumeration = false
        /// Whether the provider is told of changes of the materialized and of the pending items.
        public var followsLocalSets = true
        /// The number of concurrent calls that the provider declares.
        public var concurrentCalls = 16
        /// Whether items can be created, changed and deleted.
        public var writing = true
        /// Whether items can be trashed.
        public var trash = false
        /// Whether a call that would give two items of a directory the same name fails with `filenameCollision`. A test may
        /// still create such a tree directly.
        public var uniqueNames = true
        /// The fields that the remote can store. Others are returned as still pending. Parent, name and contents of a new
        /// item are always stored.
        public var holds = ItemFields(rawValue: .max)
        /// Whether an upload of the bytes that the remote already has is no conflict, whatever its base version. So a call
        /// that is repeated after a lost answer is recognized.
        public var recognizesEqualUploads = true
        /// Whether a deletion that is based on a version with `?` at its end takes that for the version without it, as providers do
        /// whose remote settles a file's version some time after a change.
        public var settlesVersions = false
        /// The number of bytes that an upload reads at once.
        public var uploadChunkSize: Int64 = 1 << 20
        /// Whether a directory's content version changes with any of its descendants.
        public var directoryVersionsCoverTrees = false
        /// Whether two contents of a file may have one content version, as ``RemoteTree/writeSameVersion(_:to:)`` gives them.
        public var contentVersionsMayRepeat = false
        /// Whether the root is asked for while a call stands still.
        package var isAskedBesideCalls = false
        /// The thumbnails of files; nil for a provider that has none.
        public var thumbnails: [ItemIdentifier: [UInt8]]?
        /// The quota that the remote reports; nil if it reports none.
        public var quota: RemoteQuota?

        /// A remote that can be written, and has no trash.
        public init() {}

        /// The usual options but for one.
        package static func with<Value>(_ option: WritableKeyPath<Options, Value>, _ value: Value) -> Options {
            var options = Options()
            options[keyPath: option] = value
            return options
        }
    }
}
