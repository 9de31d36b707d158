import FileProvider
import FileProviderPaths
import HTTPTransport

/// Reads and empties the trash bin of a Nextcloud or ownCloud server.
struct TrashContents: Sendable {
    let client: WebDAVClient
    let store: TrashBinStore
    /// Shows the user a message.
    let report: @Sendable (String) -> Void
    /// The most directories of a bin that are listed, each by a request of its own.
    var mostDirectories = 10_000
    private static let mostLevels = 64
    private static let longestIdentifier = 200

    /// - Throws: `featureUnsupported` when the server has no bin.
    func bin() throws -> TrashBin {
        guard let bin = store.bin else {
            throw FileProviderError(.featureUnsupported, "\(client.host) has no trash bin")
        }
        return bin
    }

    /// Detects whether the server has a bin. Without a response the stored result stays.
    ///
    /// - Parameter hasIdentifiers: whether the server has file identifiers; only such servers have bins.
    /// - Throws: `userCancelled`.
    func detect(hasIdentifiers: Bool) async throws {
        guard hasIdentifiers else { return store.note(nil) }
        for kind in TrashBin.Kind.allCases {
            guard let bin = TrashBin(kind, of: client.root.url) else { break }
            do {
                if try await exists(bin) { return store.note(kind) }
            } catch let error as FileProviderError {
                switch error.code {
                case .userCancelled: throw error
                case .serverUnreachable, .timedOut: return
                // The bin cannot be used, or belongs to another user.
                default: continue
                }
            }
        }
        store.note(nil)
    }

    /// - Throws: `cannotSynchronize` when the bin was turned off: a deletion would be final.
    func requireBin() async throws {
        guard try await exists(bin()) else { throw turnedOff(.cannotSynchronize) }
    }

    private func exists(_ bin: TrashBin) async throws -> Bool {
        let answer = try await ifExists {
            try await client.resource(at: bin.items.url, .trash, what: "the trash bin")
        }
        guard let (own, head) = answer else { return false }
        return own.status ?? 200 == 200 && bin.items.path(of: own.href, on: head.url) == .root
    }

    private func turnedOff(_ code: FileProviderError.Code) -> FileProviderError {
        store.note(nil)
        report("\(client.host) has turned its trash bin off")
        return FileProviderError(code, "the trash bin of \(client.host) is turned off")
    }

    // MARK: - Listing

    func entries() async throws -> [TrashedEntry] {
        let bin = try bin()
        do {
            return try await entries(of: bin)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw turnedOff(.featureUnsupported)
        }
    }

    func entries(in directory: TrashedEntry) async throws -> [TrashedEntry] {
        let bin = try bin()
        return try await members(of: directory.place, of: bin).compactMap { entry(bin, $0.place, $0.resource) }
    }

    /// The items that were deleted by themselves. Some versions of Nextcloud keep the former parent directories of items in
    /// the bin, although these were not deleted.
    private func entries(of bin: TrashBin) async throws -> [TrashedEntry] {
        var found: [TrashedEntry] = []
        var waiting: [[String]] = [[]]
        var count = 0
        while let place = waiting.popLast() {
            count += 1
            guard count <= mostDirectories, place.count <= Self.mostLevels else {
                throw FileProviderError(.malformedResponse, "the trash bin of \(client.host) is too deep, or too wide")
            }
            for (own, resource) in try await members(ifThere: place, of: bin) {
                if bin.kind == .nextcloud, resource.isCollection, resource.trashedAt ?? 0 == 0,
                    !Self.hasDeletionTime(own.last ?? "")
                {
                    waiting.append(own)
                } else if let entry = entry(bin, own, resource) {
                    found.append(entry)
                }
            }
        }
        return found
    }

    /// The members of the bin, or of a directory in it, which may have gone meanwhile.
    private func members(
        ifThere place: [String], of bin: TrashBin
    ) async throws -> [(place: [String], resource: DAVResource)] {
        if place.isEmpty { return try await members(of: place, of: bin) }
        return try await ifExists { try await members(of: place, of: bin) } ?? []
    }

    /// Whether a name is like `NAME.d1700000000`.
    private static func hasDeletionTime(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count > 1, let suffix = parts.last, suffix.first == UInt8(ascii: "d") else { return false }
        return suffix.count > 1 && isNumber(suffix.dropFirst())
    }

    private static func isNumber(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy { (0x30...0x39).contains($0) }
    }

    private func members(
        of place: [String], of bin: TrashBin
    ) async throws -> [(place: [String], resource: DAVResource)] {
        try await client.members(
            of: RemotePath(place), in: bin.items, .trash, what: "the trash bin",
            where: { $0.names.allSatisfy(RemotePath.isName) },
            noteIgnored: { [client, report] href in
                report("\(client.host) lists in its trash bin what is not in it: '\(href.prefix(200))'")
            }
        ).map { ($0.path.names, $0.resource) }
    }

    /// - Returns: nil for an item without an identifier or a length, which is reported.
    private func entry(_ bin: TrashBin, _ place: [String], _ resource: DAVResource) -> TrashedEntry? {
        // ownCloud calls items in its bin by their identifiers.
        let identifier =
            bin.kind == .ownCloud ? place.last.flatMap { Self.isNumber($0.utf8) ? $0 : nil } : resource.fileIdentifier
        let location = resource.trashedLocation.flatMap(TrashBin.location)
        // Members of a deleted directory have their former names.
        let name = resource.trashedName ?? location?.name ?? place.last ?? ""
        guard let identifier, !identifier.isEmpty, identifier.utf8.count <= Self.longestIdentifier else {
            report("\(client.host) has '\(name.prefix(100))' in its trash bin, and does not say what it is")
            return nil
        }
        let kind: ItemKind = resource.isCollection ? .directory : .file
        guard kind == .directory || resource.length != nil else {
            report("\(client.host) does not say how long '\(name.prefix(100))' in its trash bin is")
            return nil
        }
        // Nextcloud's ETag is the time of the deletion, which is sufficient: an item in the bin does not change.
        let tag =
            bin.kind == .ownCloud
            ? ETag.contentTag(kind, resource.etag, nil, resource.length)
            : "t\(resource.trashedAt ?? 0)-\(kind == .file ? resource.length ?? 0 : 0)"
        return TrashedEntry(
            entry: RemoteEntry(
                name: name, kind: kind, tag: Array(tag.utf8), isTagStrong: true, stableIdentifier: identifier,
                size: kind == .file ? resource.length : nil),
            place: place, wasHere: bin.wasMounted(location),
            // 0 is that of no deletion.
            trashedAt: resource.trashedAt.flatMap { $0 > 0 ? FileTimestamp(seconds: $0) : nil })
    }

    /// The item below a directory in the bin; nil when it is not there.
    func entry(_ top: TrashedEntry, below names: [String]) async throws -> TrashedEntry? {
        let bin = try bin()
        guard !top.place.isEmpty, names.allSatisfy(RemotePath.isName) else { return nil }
        if bin.kind == .ownCloud, !names.isEmpty {
            // There items are not called by their names.
            return try await ifExists {
                var current = top
                for name in names {
                    let next = try await entries(in: current).first { $0.entry.name.utf8.elementsEqual(name.utf8) }
                    guard let next else { return nil }
                    current = next
                }
                return current
            }
        }
        let place = RemotePath(top.place + names)
        let answer = try await ifExists {
            try await client.resource(at: bin.items.url(of: place), .trash, what: top.entry.name)
        }
        guard let (resource, head) = answer, resource.isDescribed,
            bin.items.path(of: resource.href, on: head.url) == place
        else { return nil }
        return entry(bin, place.names, resource)
    }

    /// The place among the user's files to which the server will restore an item. The listing need not have it.
    func location(of entry: TrashedEntry) async throws -> RemotePath? {
        let url = try bin().items.url(of: RemotePath(entry.place))
        return try await ifExists {
            try await client.resource(at: url, .trash, what: entry.entry.name)
                .resource.trashedLocation.flatMap(TrashBin.location)
        }
    }

    // MARK: - Reading and deleting

    func read(_ entry: TrashedEntry, range: Range<Int64>?, into sink: any ContentSink) async throws {
        let bin = try bin()
        guard !entry.place.isEmpty, let size = entry.entry.size else {
            throw FileProviderError(.noSuchItem, "\(client.host) has no such file in its trash bin")
        }
        // Servers differ in their responses to a request for an empty range.
        if size == 0 || range?.isEmpty == true { return }
        _ = try await client.download(
            bin.items.url(of: RemotePath(entry.place)), range: range, size: size, what: entry.entry.name, into: sink
        ) { head in
            guard head.wholeLength == nil || head.wholeLength == size else {
                throw FileProviderError(.versionNoLongerAvailable, "\(head.url.host) has another version")
            }
        }
    }

    func delete(_ entry: TrashedEntry) async throws {
        let bin = try bin()
        // An empty place would be the whole bin.
        guard !entry.place.isEmpty, entry.place.allSatisfy(RemotePath.isName) else {
            throw FileProviderError(.cannotSynchronize, "that is the trash bin itself")
        }
        let response = try await client.send(
            "DELETE", bin.items.url(of: RemotePath(entry.place)), isLong: entry.entry.kind == .directory)
        switch response.status {
        case 200, 202, 204, 404, 410: return
        case 403:
            throw FileProviderError(
                .cannotSynchronize, "\(client.host) does not permit deleting '\(entry.entry.name)' from its trash bin")
        default: throw WebDAVClient.failure(response, of: entry.entry.name, isChange: true)
        }
    }

    /// Deletes items in the bin whose names begin with a prefix, as far as possible.
    func clear(namesBeginningWith prefix: String) async {
        guard store.kind != nil, let all = try? await entries() else { return }
        for found in all where found.entry.name.utf8.starts(with: prefix.utf8) { try? await delete(found) }
    }
}
