import FileProvider

/// A remote that knows its items only by path, as WebDAV, S3 and SFTP do. ``PathAddressedProvider`` makes a provider of it.
///
/// A remote receives paths and returns entries. It keeps no tree, no identifiers and no journal: the provider assigns
/// identifiers, recognizes renamed items, and finds out whether a call without a response was carried out.
///
/// A remote that can only be read implements ``traits``, ``entry(at:)``, ``entries(in:from:limit:)`` and
/// ``read(_:tag:range:into:)``. One that can be changed also implements ``write(_:to:attributes:if:)``,
/// ``makeDirectory(at:attributes:)``, ``move(_:to:kind:)`` and ``delete(_:kind:if:)``. All other requirements have default
/// implementations.
///
/// Calls may run concurrently, and the provider cancels a call by cancelling its task. A remote throws `FileProviderError`:
/// `notAuthenticated`, `serverUnreachable`, `timedOut`, `malformedResponse`, `insufficientQuota` or `fileReadNoPermission`
/// from every call, and what a call names. A remote that can repeat an idempotent call does so before it throws.
///
/// Items that the remote makes for itself, such as an upload in progress, have a `HiddenName`, and are listed like all
/// others: the provider shows none of them, and removes those that an interrupted call left behind.
///
/// ## Topics
///
/// ### Describing
/// - ``traits``
/// - ``quota()``
///
/// ### Reading
/// - ``entry(at:)``
/// - ``entries(in:from:limit:)``
/// - ``endListing(_:)``
/// - ``tree(below:from:limit:)``
/// - ``read(_:tag:range:into:)``
///
/// ### Changing
/// - ``write(_:to:attributes:if:)``
/// - ``makeDirectory(at:attributes:)``
/// - ``makeSymbolicLink(at:to:attributes:)``
/// - ``move(_:to:kind:)``
/// - ``set(_:of:kind:)``
/// - ``delete(_:kind:if:)``
///
/// ### Ending
/// - ``close()``
public protocol PathRemote: Sendable {
    /// What the remote can do, as far as it is known now. A remote that has not been reached yet returns what is usual.
    ///
    ///     var traits: RemoteTraits {
    ///         var traits = RemoteTraits()
    ///         traits.storesModificationDates = true
    ///         return traits
    ///     }
    var traits: RemoteTraits { get }

    /// Releases connections and files. This is the last call. Does nothing by default.
    ///
    ///     func close() async { await connection.close() }
    func close() async

    /// Returns the entry of one item.
    ///
    ///     func entry(at path: RemotePath) async throws -> RemoteEntry {
    ///         guard let status = try await api.status(of: path.names) else { throw FileProviderError(.noSuchItem) }
    ///         return RemoteEntry(status)
    ///     }
    ///
    /// - Throws: `noSuchItem` only if the remote has said so; for the root, `noSuchItem` makes the domain unreachable and
    ///   removes nothing.
    func entry(at path: RemotePath) async throws -> RemoteEntry

    /// Returns a part of a directory's entries, in any order.
    ///
    ///     func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
    ///         let page = try await api.list(path.names, after: token, limit: limit)
    ///         return RemoteListing(entries: page.items.map(RemoteEntry.init), next: page.next)
    ///     }
    ///
    /// - Parameters:
    ///   - path: a directory.
    ///   - token: nil for the first part, else ``RemoteListing/next`` of the part before.
    ///   - limit: the largest number of entries to return.
    /// - Throws: `noSuchItem`, also if the item is not a directory; `pageExpired` if the listing has to start again. A listing
    ///   that is incomplete throws, at the latest with its last part: an item that is missing counts as deleted.
    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing

    /// The rest of a listing is not wanted: release what the remote keeps for it. Does nothing by default.
    ///
    ///     func endListing(_ token: [UInt8]) { cursors.close(token) }
    func endListing(_ token: [UInt8])

    /// Returns a part of all that is below a directory, if ``RemoteTraits/listsTrees``: all entries of one directory come
    /// before those of the next.
    ///
    ///     func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
    ///         let page = try await api.listRecursively(path.names, after: token, limit: limit)
    ///         return RemoteTreeListing(
    ///             entries: page.items.map { (RemotePath($0.directory), RemoteEntry($0)) }, next: page.next)
    ///     }
    ///
    /// - Throws: as ``entries(in:from:limit:)``; `featureUnsupported` by default.
    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing

    /// Writes a file's content, or a range of it, to a sink as it arrives.
    ///
    ///     func read(
    ///         _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ///     ) async throws -> RemoteEntry {
    ///         let response = try await api.get(path.names, range: range, ifMatch: tag)
    ///         var offset = range?.lowerBound ?? 0
    ///         for try await chunk in response.body {
    ///             try sink.write(chunk, at: offset)
    ///             offset += Int64(chunk.count)
    ///         }
    ///         return RemoteEntry(response.status)
    ///     }
    ///
    /// - Parameters:
    ///   - path: a file.
    ///   - tag: the content that is wanted; nil for the present one.
    ///   - range: in bytes; nil for the whole file.
    ///   - sink: receives each byte once, at its offset in the file. Call its `confirmVersion()` before the first byte if it is
    ///     certain by then that all are of `tag`. Otherwise call `confirmVersion(of:)` during a long read, whenever the remote
    ///     still has `tag`.
    /// - Returns: the entry whose bytes were written.
    /// - Throws: `versionNoLongerAvailable` if the content has another tag, before or during the transfer; `noSuchItem`;
    ///   `malformedResponse` for too few or too many bytes; what the sink throws.
    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry

    /// Makes a file, or replaces its content. No client ever sees a part of the content.
    ///
    ///     func write(
    ///         _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ///     ) async throws -> RemoteEntry {
    ///         let upload = try await api.begin(path.names)
    ///         for offset in stride(from: 0, to: contents.size, by: 1 << 20) {
    ///             try await upload.append(contents.read(at: offset, count: 1 << 20))
    ///         }
    ///         try contents.confirm()
    ///         return RemoteEntry(try await upload.commit(if: condition))
    ///     }
    ///
    /// - Parameters:
    ///   - contents: the whole content. Call `confirm()` after the last byte was read and before the file is replaced.
    ///   - path: a place in an existing directory.
    ///   - attributes: those to store with the file, if they can be.
    ///   - condition: of what is at the path now.
    /// - Returns: the entry of the file that was written.
    /// - Throws: ``RemoteConditionFailure`` with the present entry; `noSuchItem` if the directory is missing; what
    ///   `ContentSource` throws; `featureUnsupported` by default.
    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry

    /// Makes a directory at a path where nothing is.
    ///
    ///     func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
    ///         RemoteEntry(try await api.makeDirectory(path.names))
    ///     }
    ///
    /// - Throws: ``RemoteConditionFailure`` with the present entry; `noSuchItem` if the parent is missing;
    ///   `featureUnsupported` by default.
    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry

    /// Makes a symbolic link at a path where nothing is, if ``RemoteTraits/hasSymbolicLinks``.
    ///
    ///     func makeSymbolicLink(
    ///         at path: RemotePath, to target: String, attributes: RemoteAttributes
    ///     ) async throws -> RemoteEntry {
    ///         RemoteEntry(try await api.link(path.names, target: target))
    ///     }
    ///
    /// - Throws: as ``makeDirectory(at:attributes:)``; `featureUnsupported` by default.
    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry

    /// Moves an item, a directory with all below it, to a path where nothing is.
    ///
    ///     func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
    ///         RemoteEntry(try await api.rename(path.names, to: newPath.names, replacing: false))
    ///     }
    ///
    /// - Throws: ``RemoteConditionFailure`` with the entry at the new path; `noSuchItem` if the item or the new parent is
    ///   missing; `featureUnsupported` by default.
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry

    /// Stores those of the given attributes that the remote can store. By default it stores none.
    ///
    ///     func set(
    ///         _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ///     ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
    ///         let status = try await api.touch(path.names, date: attributes.contentModificationDate)
    ///         return (RemoteEntry(status), attributes.fields.subtracting(.contentModificationDate))
    ///     }
    ///
    /// - Returns: the entry, and the fields that were not stored.
    /// - Throws: `noSuchItem`.
    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields)

    /// Deletes a file, or a directory with all below it. Succeeds if the item was removed already.
    ///
    ///     func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
    ///         try await api.delete(path.names, if: condition)
    ///     }
    ///
    /// - Throws: ``RemoteConditionFailure`` with the present entry; `featureUnsupported` by default.
    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws

    /// Returns the free and total space of the remote; nil, as by default, if it does not report them.
    ///
    ///     func quota() async throws -> RemoteQuota? {
    ///         let account = try await api.account()
    ///         return RemoteQuota(total: account.bytes, available: account.free)
    ///     }
    ///
    /// - Throws: `serverUnreachable`, `notAuthenticated`.
    func quota() async throws -> RemoteQuota?
}

extension PathRemote {
    public func close() async {}

    public func endListing(_ token: [UInt8]) {}

    public func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        throw FileProviderError(.featureUnsupported, "this remote lists no trees")
    }

    public func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        throw Self.readOnly
    }

    public func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        throw Self.readOnly
    }

    public func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        throw FileProviderError(.featureUnsupported, "this remote has no symbolic links")
    }

    public func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        throw Self.readOnly
    }

    public func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        (try await entry(at: path), attributes.fields)
    }

    public func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        throw Self.readOnly
    }

    public func quota() async throws -> RemoteQuota? { nil }

    private static var readOnly: FileProviderError {
        FileProviderError(.featureUnsupported, "this remote can only be read")
    }

    /// The most entries of a directory: the system does not show one that has more.
    private static var mostEntries: Int { 10_000_000 }

    /// Calls a closure with the listing of a directory, part by part, until it returns false.
    ///
    /// - Throws: as ``entries(in:from:limit:)``; `malformedResponse` for a listing that does not end.
    package func visitListing(
        of path: RemotePath, limit: Int = 1000, _ visit: (RemoteListing) async throws -> Bool
    ) async throws {
        var token: [UInt8]?
        var check = CycleCheck<[UInt8]>()
        var listed = 0
        let what = "'/\(path.names.joined(separator: "/"))'"
        repeat {
            let part = try await entries(in: path, from: token, limit: limit)
            token = part.next
            listed += part.entries.count
            do {
                try check.check(token, isEmpty: part.entries.isEmpty, of: what)
                guard listed <= Self.mostEntries else {
                    throw FileProviderError(.malformedResponse, "\(what) has more than \(Self.mostEntries) entries")
                }
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
