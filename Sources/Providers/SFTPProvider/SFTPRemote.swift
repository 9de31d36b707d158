import FileNames
import FileProvider
import FileProviderPaths
import Synchronization

final class SFTPRemote: PathRemote {
    /// A listing whose rest has not been requested yet.
    private struct OpenListing {
        var session: SFTPSession
        var handle: [UInt8]
        var rest: [SFTPName] = []
    }

    let connection: SFTPConnection
    let bulk: SFTPBulkConnections
    let readFiles = SFTPReadFiles()
    let readOnlyDirectories = SFTPReadOnlyDirectories()
    /// Whether the server's file system has made every hard link so far.
    let hasHardLinks = Atomic(true)
    /// Whether the server has stored the attributes of the last item that was made.
    let storesAttributes = Atomic(true)
    /// Whether the server takes several READDIR of one directory at once. The draft lets it; not all programs may.
    private let takesReadAhead = Atomic(true)
    private let root: [UInt8]
    private let listings = KeptListings<OpenListing>()

    /// The most READDIR of a directory that are in flight.
    private static let mostReadAhead = 16

    /// The most rounds of READDIR one after the other that bring no name.
    private static let mostFruitless = 100

    init(root: [UInt8], open: @escaping @Sendable () async throws -> SFTPSession) {
        self.root = root
        connection = SFTPConnection(open: open)
        bulk = SFTPBulkConnections(open: open)
    }

    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.checksEmptiness = true
        traits.hasSymbolicLinks = true
        traits.storesModificationDates = true
        traits.storesPermissions = true
        traits.datesMakeTags = true
        traits.concurrentCalls = 64
        return traits
    }

    func close() async {
        await bulk.close()
        await connection.close()
    }

    func bytes(_ path: RemotePath) -> [UInt8] {
        var bytes = root
        for name in path.names {
            if bytes != [UInt8(ascii: "/")] { bytes.append(UInt8(ascii: "/")) }
            bytes += FileNameText.bytes(of: name)
        }
        return bytes
    }

    // MARK: - Reading

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        try await connection.reading { session in
            try await reading(in: path.parent, session) { try await present(path, session) }
        }
    }

    /// The entry as it is now. The root may be a symbolic link to a directory; nothing below it is followed.
    func present(_ path: RemotePath, _ session: SFTPSession) async throws -> RemoteEntry {
        try await present(path, lookup(path, session), session)
    }

    /// Sends the request for the attributes of an item.
    func lookup(_ path: RemotePath, _ session: SFTPSession) -> SFTPRequest {
        session.send(path.names.isEmpty ? SFTPMessage.stat : SFTPMessage.lstat, [bytes(path)])
    }

    func present(_ path: RemotePath, _ look: SFTPRequest, _ session: SFTPSession) async throws -> RemoteEntry {
        let attributes = try await look.reply().attributes()
        let found = try await entry(path.name ?? "", attributes, at: bytes(path), session)
        guard let entry = readOnlyDirectories.shown(found, at: path) else {
            throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is neither a file, a directory nor a link")
        }
        return entry
    }

    func presentIfAny(_ path: RemotePath, _ session: SFTPSession) async throws -> RemoteEntry? {
        try await presentIfAny(path, lookup(path, session), session)
    }

    func presentIfAny(_ path: RemotePath, _ look: SFTPRequest, _ session: SFTPSession) async throws -> RemoteEntry? {
        do {
            return try await present(path, look, session)
        } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
            return nil
        }
    }

    /// - Returns: nil for a device, a pipe or a socket.
    private func entry(
        _ name: String, _ attributes: SFTPAttributes, at path: [UInt8], _ session: SFTPSession
    ) async throws -> RemoteEntry? {
        guard var entry = try RemoteEntry(answered: name, attributes) else { return nil }
        if entry.kind == .symbolicLink {
            let target = try await session.request(SFTPMessage.readlink, [path]).names().first
            guard let target else { throw SFTPReader.Malformed() }
            entry.attributes.symbolicLinkTarget = FileNameText.text(of: target.name)
        }
        return entry
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        guard let token else {
            return try await connection.reading { session in
                try await reading(in: path, session) { try await firstPart(of: path, limit, session) }
            }
        }
        guard let listing = listings.take(token) else { throw FileProviderError(.pageExpired) }
        do {
            return try await SFTPStatus.translating { try await part(of: listing, path, limit) }
        } catch  where !listing.session.isOpen && !Task.isCancelled {
            throw FileProviderError(.pageExpired)
        }
    }

    private func firstPart(of path: RemotePath, _ limit: Int, _ session: SFTPSession) async throws -> RemoteListing {
        let look = lookup(path, session)
        let handle: [UInt8]
        do {
            handle = try await session.request(SFTPMessage.opendir, [bytes(path)]).handle()
        } catch let status as SFTPStatus where status.code == SFTPStatus.failure {
            guard try await present(path, look, session).kind != .directory else { throw status }
            throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no directory")
        }
        // Opening follows a symbolic link. The part is requested without waiting for this response.
        var permissions: UInt16 = 0
        let part = try await part(of: OpenListing(session: session, handle: handle), path, limit) {
            let directory = try await present(path, look, session)
            guard directory.kind == .directory else {
                throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no directory")
            }
            permissions = directory.attributes.permissions ?? 0
        }
        // A server leaves out what it cannot look up: of a directory that may be listed and not searched that is everything.
        if part.entries.isEmpty, permissions & 0o111 != 0o111 {
            _ = try await session.request(SFTPMessage.lstat, [bytes(path) + Array("/.".utf8)]).attributes()
        }
        return part
    }

    func endListing(_ token: [UInt8]) {
        guard let listing = listings.take(token) else { return }
        listing.session.closeHandle(listing.handle)
    }

    private func part(
        of listing: OpenListing, _ path: RemotePath, _ limit: Int, _ check: () async throws -> Void = {}
    ) async throws -> RemoteListing {
        var listing = listing
        let session = listing.session
        var isAtEnd = false
        do {
            // Most directories end with the second response.
            var readAhead = takesReadAhead.load(ordering: .relaxed) ? 2 : 1
            var fruitless = 0
            while listing.rest.count < limit, !isAtEnd {
                let before = listing.rest.count
                let requests = (0..<readAhead).map { _ in
                    session.send(SFTPMessage.readdir, [listing.handle])
                }
                if listing.rest.isEmpty { try await check() }
                for request in requests {
                    do {
                        let names = try await request.reply().names()
                        listing.rest += names.filter { $0.name != Array(".".utf8) && $0.name != Array("..".utf8) }
                    } catch let status as SFTPStatus where status.code == SFTPStatus.endOfFile {
                        isAtEnd = true
                    } catch let status as SFTPStatus where readAhead > 1 {
                        takesReadAhead.store(false, ordering: .relaxed)
                        throw status
                    }
                }
                fruitless = listing.rest.count > before ? 0 : fruitless + 1
                guard fruitless <= Self.mostFruitless else { throw SFTPReader.Malformed() }
                if readAhead > 1 { readAhead = min(2 * readAhead, Self.mostReadAhead) }
            }
            let names = listing.rest.prefix(limit)
            listing.rest.removeFirst(names.count)
            var part = RemoteListing(entries: [])
            try await withThrowingTaskGroup(of: (Int, RemoteEntry?, isLeftOut: Bool).self) { group in
                var entries: [RemoteEntry?] = Array(repeating: nil, count: names.count)
                for (index, name) in names.enumerated() {
                    let text = FileNameText.text(of: name.name)
                    guard !name.name.isEmpty, !name.name.contains(UInt8(ascii: "/")) else {
                        throw SFTPReader.Malformed()
                    }
                    let place = path.appending(text)
                    // A server may leave out any attribute of a name.
                    let isComplete = name.attributes.areComplete
                    guard !isComplete || RemoteEntry(text, name.attributes)?.kind == .symbolicLink else {
                        entries[index] = readOnlyDirectories.shown(RemoteEntry(text, name.attributes), at: place)
                        part.leavesOut = part.leavesOut || entries[index] == nil
                        continue
                    }
                    group.addTask { [self] in
                        do {
                            var attributes = name.attributes
                            if !isComplete { attributes = try await lookup(place, session).reply().attributes() }
                            let found = try await entry(text, attributes, at: bytes(place), session)
                            return (index, readOnlyDirectories.shown(found, at: place), isLeftOut: found == nil)
                        } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                            return (index, nil, isLeftOut: false)
                        }
                    }
                }
                for try await (index, entry, isLeftOut) in group {
                    entries[index] = entry
                    part.leavesOut = part.leavesOut || isLeftOut
                }
                part.entries = entries.compactMap { $0 }
            }
            if isAtEnd, listing.rest.isEmpty {
                session.closeHandle(listing.handle)
            } else {
                part.next = keep(listing)
            }
            return part
        } catch {
            session.closeHandle(listing.handle)
            throw error
        }
    }

    private func keep(_ listing: OpenListing) -> [UInt8] {
        let (token, oldest) = listings.keep(listing)
        if let oldest { oldest.session.closeHandle(oldest.handle) }
        return token
    }

    func quota() async throws -> RemoteQuota? {
        try await connection.reading { session in
            try await statistics(session).map { RemoteQuota(free: $0.free, total: $0.total) }
        }
    }

    /// The free and total bytes of the server's file system, and how many items it still takes; nil where the server does not
    /// say so.
    func statistics(_ session: SFTPSession) async throws -> (free: Int64, total: Int64, freeItems: UInt64?)? {
        guard session.has("statvfs@openssh.com") else { return nil }
        let name = Array("statvfs@openssh.com".utf8)
        let numbers = try await session.request(SFTPMessage.extended, [name, root]).numbers(8)
        func bytes(_ blocks: UInt64) -> Int64 {
            let (product, overflow) = blocks.multipliedReportingOverflow(by: numbers[1])
            return overflow ? .max : Int64(clamping: product)
        }
        // Btrfs counts no items.
        return (bytes(numbers[4]), bytes(numbers[2]), numbers[5] == 0 ? nil : numbers[7])
    }
}

extension RemoteEntry {
    /// The seconds for which a file may still be written without another time.
    private static let settlingTime: Int64 = 3

    /// The entry of an item whose attributes the server was asked for.
    ///
    /// - Returns: as ``init(_:_:)``.
    /// - Throws: ``SFTPReader/Malformed`` for a file without a size, which would look like an empty one.
    init?(answered name: String, _ attributes: SFTPAttributes) throws(SFTPReader.Malformed) {
        self.init(name, attributes)
        guard kind != .file || attributes.size != nil else { throw SFTPReader.Malformed() }
    }

    /// - Returns: nil for a device, a pipe or a socket.
    init?(_ name: String, _ attributes: SFTPAttributes) {
        let kind: ItemKind
        switch (attributes.permissions ?? 0o100000) & 0o170000 {
        case 0o100000, 0: kind = .file
        case 0o040000: kind = .directory
        case 0o120000: kind = .symbolicLink
        default: return nil
        }
        let modified = attributes.modified.map(Int64.init)
        let size = Int64(clamping: attributes.size ?? 0)
        self.init(
            name: name, kind: kind, tag: kind == .file ? Array("\(modified ?? 0)-\(size)".utf8) : [],
            isTagStrong: false, size: kind == .file ? size : nil,
            attributes: RemoteAttributes(
                contentModificationDate: modified.map { FileTimestamp(seconds: $0) },
                permissions: attributes.permissions.map { UInt16($0 & 0o7777) }))
        if kind == .file, let modified {
            isTagUnsettled = abs(FileTimestamp.now.seconds - modified) < Self.settlingTime
        }
    }
}
