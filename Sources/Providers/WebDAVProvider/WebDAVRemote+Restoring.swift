import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// Bringing back what is in the trash bin. Nextcloud puts it where it was, under another name where that is taken, or among
/// all files where its directory is gone; from there it is moved to where it is wanted.
extension WebDAVRemote {
    package func restore(_ entry: TrashedEntry, to path: RemotePath) async throws -> RemoteEntry {
        try await connect()
        guard let bin = trashBins.bin else {
            throw FileProviderError(.featureUnsupported, "\(client.base.host) has no trash bin")
        }
        let name = path.name ?? "/"
        guard !entry.place.isEmpty, entry.place.allSatisfy(TrashBin.isName),
            let identifier = entry.entry.stableIdentifier
        else { throw FileProviderError(.noSuchItem, "\(client.base.host) has no '\(name)' in its trash bin") }
        if ServerCapabilities.isOdd(name), try await capabilities(probingIn: path.parent).fate(of: name) != .kept {
            throw oddName(name)
        }
        guard try await sight(of: path.parent, isDirectory: true) != nil else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no directory for '\(name)'")
        }
        try await requireAbsence(path)
        switch bin.kind {
        case .ownCloud:
            try await moveIn(bin.url(of: entry.place), to: path, entry.entry.kind)
            return try await restored(identifier, entry.entry.kind, at: path)
        case .nextcloud:
            try restorations.begin(identifier, from: await location(of: entry, in: bin))
            var target = bin.restored
            target.path += PercentEncoding.encode(entry.place[entry.place.count - 1])
            let response = try await client.send(
                "MOVE", bin.url(of: entry.place),
                ["Destination": target.description, "Overwrite": "F"], isLong: true)
            // What is not there may have gone by this very request, sent once more.
            guard response.head.isSuccess || response.status == 404 else {
                // A gateway that gives up says nothing of what is done behind it.
                if response.status < 500 || response.status == 507 { restorations.end(identifier) }
                throw WebDAVClient.failure(response, of: name, isChange: true)
            }
            if let moved = try await resumeRestoring(identifier, kind: entry.entry.kind, to: path) { return moved }
            restorations.end(identifier)
            throw FileProviderError(
                response.status == 404 ? .noSuchItem : .providerDomainTemporarilyUnavailable,
                "\(client.base.host) has not brought '\(name)' back")
        }
    }

    package func resumeRestoring(
        _ identifier: String, kind: ItemKind, to path: RemotePath
    ) async throws -> RemoteEntry? {
        try await connect()
        guard let bin = trashBins.bin, bin.kind == .nextcloud, let record = restorations.record(of: identifier) else {
            return nil
        }
        if let there = try await sight(of: path, isDirectory: kind == .directory)?.entry,
            there.stableIdentifier == identifier, there.kind == kind
        {
            restorations.end(identifier)
            return there
        }
        guard let source = try await find(identifier, kind, record.location, in: bin) else { return nil }
        try await requireAbsence(path)
        try await moveIn(source, to: path, kind)
        let moved = try await restored(identifier, kind, at: path)
        restorations.end(identifier)
        return moved
    }

    /// Where the server will put it: what is asked for in a listing need not be of that.
    private func location(of entry: TrashedEntry, in bin: TrashBin) async throws -> [String]? {
        let found = Mutex<DAVResource?>(nil)
        do {
            _ = try await client.properties(
                bin.url(of: entry.place), depth: 0, body: DAVResource.requestForTrash, what: entry.entry.name
            ) { resource, _ in found.withLock { $0 = $0 ?? resource } }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // It has left the bin by now.
        }
        return found.withLock { $0 }?.trashedLocation.flatMap(TrashBin.names)
    }

    /// Finds what the server has brought back: where it was, beside that, or among all files.
    private func find(
        _ identifier: String, _ kind: ItemKind, _ location: [String]?, in bin: TrashBin
    ) async throws -> HTTPURL? {
        var directories: [[String]] = [[]]
        if let location {
            let old = bin.url(ofFile: location, isDirectory: kind == .directory)
            if try await identifiers(at: old, depth: 0, bin)[identifier] != nil { return old }
            if location.count > 1 { directories.insert(Array(location.dropLast()), at: 0) }
        }
        for directory in directories {
            let all = try await identifiers(at: bin.url(ofFile: directory, isDirectory: true), depth: 1, bin)
            guard let names = all[identifier], !names.isEmpty, names.allSatisfy(TrashBin.isName) else { continue }
            return bin.url(ofFile: names, isDirectory: kind == .directory)
        }
        return nil
    }

    /// The names of what is at an address, or in it, by their identifiers; none for what is not there.
    private func identifiers(at url: HTTPURL, depth: Int, _ bin: TrashBin) async throws -> [String: [String]] {
        let found = Mutex<[String: [String]]>([:])
        do {
            _ = try await client.properties(
                url, depth: depth, body: DAVResource.request(withIdentifiers: true, withQuota: false),
                what: "what was in the trash bin"
            ) { [client] resource, head in
                guard let identifier = resource.fileIdentifier, (200..<300).contains(resource.status ?? 200),
                    let path = client.path(of: resource.href, on: head.url, in: bin.files)
                else { return }
                found.withLock { $0[identifier] = path.names }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return [:]
        }
        return found.withLock { $0 }
    }

    /// Moves something of the user's to a free name in the collection.
    private func moveIn(_ source: HTTPURL, to path: RemotePath, _ kind: ItemKind) async throws {
        let name = path.name ?? "/"
        let target = client.url(of: path, isDirectory: kind == .directory)
        let response = try await client.send(
            "MOVE", source, ["Destination": target.description, "Overwrite": "F"], isLong: true)
        if response.head.isSuccess { return }
        switch response.status {
        case 403, 412:
            // ownCloud says the one, others the other, of a name that is taken.
            if let there = try await sight(of: path) { throw RemoteConditionFailure(present: there.entry) }
        case 404, 409:
            if try await sight(of: path.parent, isDirectory: true) == nil {
                throw FileProviderError(.noSuchItem, "\(client.base.host) has no directory for '\(name)'")
            }
        default: break
        }
        throw WebDAVClient.failure(response, of: name, isChange: true)
    }

    private func restored(_ identifier: String, _ kind: ItemKind, at path: RemotePath) async throws -> RemoteEntry {
        guard let there = try await sight(of: path, isDirectory: kind == .directory)?.entry,
            there.stableIdentifier == identifier, there.kind == kind
        else {
            throw FileProviderError(
                .malformedResponse, "\(client.base.host) has brought back '\(path.name ?? "/")' as something else")
        }
        return there
    }
}
