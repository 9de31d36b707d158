import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// The trash bin of a Nextcloud or an ownCloud.
extension WebDAVRemote: TrashingRemote {
    private static let mostLevels = 64
    private static let longestIdentifier = 200

    /// In words that go on after the server's name.
    var trashRemarks: [String] {
        switch trashBins.bin?.kind {
        case nil: []
        case .nextcloud: ["has a trash bin: it is the trash of this domain, and keeps what is deleted here, too"]
        case .ownCloud:
            [
                "has a trash bin: it is the trash of this domain, and keeps what is deleted here, too; what is in it "
                    + "cannot be read unless it was here before"
            ]
        }
    }

    // MARK: - Finding the bin

    /// Finds out whether the server has a bin. Where it does not say, what was known stays.
    ///
    /// - Throws: when it is cancelled.
    func findTrashBin(isIdentifying: Bool) async throws {
        guard isIdentifying else { return trashBins.note(nil) }
        for kind in TrashBin.Kind.allCases {
            guard let bin = TrashBin(kind, of: client.base) else { return trashBins.note(nil) }
            do {
                if try await isThere(bin) { return trashBins.note(kind) }
            } catch let error as FileProviderError {
                switch error.code {
                case .userCancelled: throw error
                case .serverUnreachable, .timedOut: return
                // It is none that can be used, or not with this user's name in its address.
                default: continue
                }
            }
        }
        trashBins.note(nil)
    }

    private func isThere(_ bin: TrashBin) async throws -> Bool {
        let found = Mutex(false)
        do {
            _ = try await client.properties(
                bin.items, depth: 0, body: DAVResource.requestForTrash, what: "the trash bin"
            ) { [client] resource, head in
                let path = client.path(of: resource.href, on: head.url, in: bin.items)
                if path == .root, resource.status ?? 200 == 200 { found.withLock { $0 = true } }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return false
        }
        return found.withLock { $0 }
    }

    private func bin() async throws -> TrashBin {
        try await connect()
        guard let bin = trashBins.bin else {
            throw FileProviderError(.featureUnsupported, "\(client.base.host) has no trash bin")
        }
        return bin
    }

    /// The bin itself is not there.
    private func turnedOff(_ code: FileProviderError.Code) -> FileProviderError {
        trashBins.note(nil)
        report("\(client.base.host) has turned its trash bin off")
        return FileProviderError(code, "the trash bin of \(client.base.host) is turned off")
    }

    // MARK: - Listing

    package func trashedEntries() async throws -> [TrashedEntry] {
        let bin = try await bin()
        do {
            return try await entries(below: [], of: bin, levels: Self.mostLevels)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw turnedOff(.featureUnsupported)
        }
    }

    package func trashedEntries(in directory: TrashedEntry) async throws -> [TrashedEntry] {
        let bin = try await bin()
        return try await contents(of: directory.place, of: bin).compactMap { entry(bin, $0.place, $0.resource) }
    }

    /// What was thrown away by itself. Some versions of Nextcloud keep the directories in which things were as directories
    /// in the bin, which were not thrown away.
    private func entries(below place: [String], of bin: TrashBin, levels: Int) async throws -> [TrashedEntry] {
        var found: [TrashedEntry] = []
        for (own, resource) in try await contents(of: place, of: bin) {
            if bin.kind == .nextcloud, resource.isCollection, resource.trashedAt ?? 0 == 0,
                !Self.hasDeletionTime(own.last ?? "")
            {
                guard levels > 0 else {
                    throw FileProviderError(.malformedResponse, "the trash bin of \(client.base.host) is too deep")
                }
                do {
                    found += try await entries(below: own, of: bin, levels: levels - 1)
                } catch let error as FileProviderError where error.code == .noSuchItem {
                    continue
                }
            } else if let entry = entry(bin, own, resource) {
                found.append(entry)
            }
        }
        return found
    }

    /// `NAME.d1700000000`.
    private static func hasDeletionTime(_ name: String) -> Bool {
        guard let dot = name.utf8.lastIndex(of: 0x2E) else { return false }
        let digits = name.utf8[name.utf8.index(after: dot)...].dropFirst()
        return name.utf8[dot...].dropFirst().first == UInt8(ascii: "d") && !digits.isEmpty
            && digits.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// What a directory in the bin, or the bin itself, holds.
    private func contents(
        of place: [String], of bin: TrashBin
    ) async throws -> [(place: [String], resource: DAVResource)] {
        let gathered = Mutex((found: [(place: [String], resource: DAVResource)](), own: DAVResource?.none))
        let path = RemotePath(place)
        _ = try await client.properties(
            bin.url(of: place, isDirectory: true), depth: 1, body: DAVResource.requestForTrash, what: "the trash bin"
        ) { [client, report] resource, head in
            let there = client.path(of: resource.href, on: head.url, in: bin.items)
            if there == path {
                gathered.withLock { $0.own = resource }
                return
            }
            guard let there, there.isBelow(path), there.names.count == place.count + 1,
                there.names.allSatisfy(TrashBin.isName)
            else {
                return report(
                    "\(head.url.host) lists in its trash bin what is not in it: '\(resource.href.prefix(200))'")
            }
            guard (200..<300).contains(resource.status ?? 200) else { return }
            gathered.withLock { $0.found.append((there.names, resource)) }
        }
        let (found, own) = gathered.withLock { $0 }
        guard let own, own.status ?? 200 != 404 else {
            throw FileProviderError(.malformedResponse, "\(client.base.host) does not say what its trash bin is")
        }
        return found
    }

    /// - Returns: nil for what cannot be told from others, which is reported.
    private func entry(_ bin: TrashBin, _ place: [String], _ resource: DAVResource) -> TrashedEntry? {
        var identifier = resource.fileIdentifier
        if bin.kind == .ownCloud {
            identifier = place.last.flatMap { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } ? $0 : nil }
        }
        let location = resource.trashedLocation.flatMap(TrashBin.names)
        // Below a directory that was thrown away names are as they were.
        let name = resource.trashedName ?? location?.last ?? place.last ?? ""
        guard let identifier, !identifier.isEmpty, identifier.utf8.count <= Self.longestIdentifier else {
            report("\(client.base.host) has '\(name.prefix(100))' in its trash bin, and does not say what it is")
            return nil
        }
        let kind: ItemKind = resource.isCollection ? .directory : .file
        guard kind == .directory || resource.length != nil else {
            report("\(client.base.host) does not say how long '\(name.prefix(100))' in its trash bin is")
            return nil
        }
        // Nextcloud gives the time of the deletion for a tag: what is in the bin does not change, so that will do there.
        let tag =
            bin.kind == .ownCloud
            ? Self.tag(kind, resource.etag, nil, resource.length)
            : "t\(resource.trashedAt ?? 0)-\(kind == .file ? resource.length ?? 0 : 0)"
        let entry = RemoteEntry(
            name: name, kind: kind, tag: Array(tag.utf8), isTagStrong: true, stableIdentifier: identifier,
            size: kind == .file ? resource.length : nil)
        return TrashedEntry(
            entry: entry, place: place, wasHere: location.map(bin.isMounted) ?? bin.mounted.isEmpty)
    }

    package func trashedEntry(_ top: TrashedEntry, below names: [String]) async throws -> TrashedEntry? {
        let bin = try await bin()
        guard !top.place.isEmpty, names.allSatisfy(TrashBin.isName) else { return nil }
        do {
            if bin.kind == .ownCloud {
                // There nothing is called by its name.
                var current = top
                for name in names {
                    let all = try await trashedEntries(in: current)
                    guard let next = all.first(where: { $0.entry.name.utf8.elementsEqual(name.utf8) }) else {
                        return nil
                    }
                    current = next
                }
                if !names.isEmpty { return current }
            }
            let place = bin.kind == .ownCloud ? top.place : top.place + names
            let found = Mutex<DAVResource?>(nil)
            _ = try await client.properties(
                bin.url(of: place), depth: 0, body: DAVResource.requestForTrash, what: top.entry.name
            ) { [client] resource, head in
                guard client.path(of: resource.href, on: head.url, in: bin.items) == RemotePath(place),
                    (200..<300).contains(resource.status ?? 200)
                else { return }
                found.withLock { $0 = $0 ?? resource }
            }
            return found.withLock { $0 }.flatMap { entry(bin, place, $0) }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return nil
        }
    }

    // MARK: - Throwing away, reading, deleting

    package func throwAway(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        let bin = try await bin()
        // Without it, that would delete for good.
        guard try await isThere(bin) else { throw turnedOff(.cannotSynchronize) }
        guard try await sight(of: path, isDirectory: kind == .directory) != nil else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no '\(path.name ?? "/")'")
        }
        try await delete(path, kind: kind, if: condition, isKept: true)
    }

    package func readTrashed(_ entry: TrashedEntry, range: Range<Int64>?, into sink: any ContentSink) async throws {
        let bin = try await bin()
        guard !entry.place.isEmpty, let size = entry.entry.size else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no such file in its trash bin")
        }
        // Asked for a part that is empty, servers answer what they like.
        if size == 0 || range?.isEmpty == true { return }
        _ = try await client.download(
            bin.url(of: entry.place), range: range, size: size, what: entry.entry.name, into: sink
        ) { head in
            let length =
                head.status == 206 ? ContentRange(head.fields["Content-Range"])?.total : head.contentLength
            guard length == nil || length == size else {
                throw FileProviderError(.versionNoLongerAvailable, "\(head.url.host) has another version")
            }
        }
    }

    package func deleteTrashed(_ entry: TrashedEntry) async throws {
        let bin = try await bin()
        // Without a name it would be all that is in the bin.
        guard !entry.place.isEmpty, entry.place.allSatisfy(TrashBin.isName) else {
            throw FileProviderError(.cannotSynchronize, "that is the trash bin itself")
        }
        let response = try await client.send("DELETE", bin.url(of: entry.place), isLong: true)
        switch response.status {
        case 200, 202, 204, 404, 410: return
        case 403:
            throw FileProviderError(
                .cannotSynchronize,
                "\(client.base.host) does not permit deleting '\(entry.entry.name)' from its trash bin")
        default: throw WebDAVClient.failure(response, of: entry.entry.name, isChange: true)
        }
    }
}
