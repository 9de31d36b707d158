import FileProvider
import FileProviderPaths
import ProgramProvider
import Synchronization

/// A remote of rclone's configuration, or a directory in it.
final class RcloneRemote: PathRemote, RcloneDirectoryReader {
    let host: RcloneHost
    let source: RcloneSource
    let files: TransferFiles
    /// The last known features, and what is done when they are others.
    private let known: Mutex<RcloneFeatures?>
    private let onFeatures: @Sendable (RcloneFeatures) -> Void
    /// The session whose features are known.
    private let asked = Mutex<ObjectIdentifier?>(nil)
    private let hasIdentifiers = Mutex(false)
    /// Whether the user was told of files that are not shown.
    private let hasReportedUnsized = Mutex(false)
    private let report: @Sendable (String) -> Void
    /// The time after which the backend is asked whether it still answers while a directory is listed, again and again.
    private let checkInterval: Duration
    private let lookups = RcloneLookups()
    private let listings = RcloneListings()
    /// How often a file is looked up while it is downloaded. Many backends limit the number of requests.
    static let confirmationInterval = Duration.seconds(3)
    /// Hidden names that must not be removed as leftovers: the old time of an upload says nothing of its age.
    let uploads = Mutex<Set<RemotePath>>([])

    /// - Parameter report: tells the user of something.
    init(
        host: RcloneHost, source: RcloneSource, files: TransferFiles, features: RcloneFeatures?,
        checkInterval: Duration = .seconds(10), report: @escaping @Sendable (String) -> Void,
        onFeatures: @escaping @Sendable (RcloneFeatures) -> Void
    ) {
        self.checkInterval = checkInterval
        (self.host, self.source, self.files, self.onFeatures) = (host, source, files, onFeatures)
        self.report = report
        known = Mutex(features)
    }

    var traits: RemoteTraits {
        let features = known.withLock { $0 } ?? RcloneFeatures()
        var traits = RemoteTraits()
        traits.checksEmptiness = true
        traits.concurrentCalls = RcloneSession.concurrentCalls
        // rclone waits five minutes for a connection on which nothing comes.
        traits.isAskedBesideCalls = true
        traits.storesModificationDates = features.precision != nil
        traits.datesMakeTags = features.precision != nil && features.hash == nil
        traits.peculiarities = [
            "rclone has no conditional changes: a change by another client just before one of ours is overwritten"
        ]
        if !features.movesDirectories {
            traits.peculiarities.append("a renamed directory is moved file by file")
        }
        if features.precision == nil { traits.peculiarities.append("modification times are not stored") }
        return traits
    }

    func close() async { await host.close() }

    func features() async throws -> RcloneFeatures { try await host.reading { try await features($0) } }

    /// The features of the remote, requested once from each process.
    func features(_ session: RcloneSession) async throws -> RcloneFeatures {
        let identity = ObjectIdentifier(session)
        if asked.withLock({ $0 == identity }), let features = known.withLock({ $0 }) { return features }
        let information = try await session.call(
            "operations/fsinfo", RcloneCall(fs: source.root), returning: FilesystemInformation.self)
        let features = RcloneFeatures(information)
        let before = known.withLock { exchange(&$0, with: features) }
        asked.withLock { $0 = identity }
        if features != before { onFeatures(features) }
        return features
    }

    /// Whether the backend has identifiers of its own: then a file is replaced in place, and stays the same item.
    var hasSeenIdentifiers: Bool { hasIdentifiers.withLock { $0 } }

    func options(_ features: RcloneFeatures, isFile: Bool = false) -> [String: RcloneValue] {
        var options: [String: RcloneValue] = ["noMimeType": .flag(true), "showOrigIDs": .flag(true)]
        if let hash = features.hash {
            options["showHash"] = .flag(true)
            options["hashTypes"] = .list([hash])
        }
        if isFile { options["filesOnly"] = .flag(true) }
        return options
    }

    private func entry(_ item: RcloneItem, _ features: RcloneFeatures, in parent: RemotePath) throws -> RemoteEntry {
        if item.ID != nil, features.hasStableIdentifiers { hasIdentifiers.withLock { $0 = true } }
        var entry = try item.entry(features)
        if HiddenName.isOne(entry.name) {
            let path = parent.appending(entry.name)
            if entry.name == Self.marker || uploads.withLock({ $0.contains(path) }) {
                entry.attributes.contentModificationDate = nil
            }
        }
        return entry
    }

    // MARK: - Reading

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        guard let entry = try await presentIfAny(path) else {
            throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is not on the remote")
        }
        return entry
    }

    /// The entry at a path as it is now, if there is one.
    ///
    /// - Parameter isFile: a directory of this name does not count.
    func presentIfAny(_ path: RemotePath, isFile: Bool = false) async throws -> RemoteEntry? {
        isFile ? try await lookups.file(at: path, from: self) : try await lookUp(path)
    }

    func lookUpFile(_ path: RemotePath) async throws -> RemoteEntry? { try await lookUp(path, isFile: true) }

    /// - Parameter isFile: a directory of this name is not searched for, which rclone does by listing the parent.
    private func lookUp(_ path: RemotePath, isFile: Bool = false) async throws -> RemoteEntry? {
        try await host.reading { session in
            let features = try await features(session)
            guard let name = path.name else {
                // rclone's stat makes the root up. It is looked up to find out whether the backend answers.
                _ = try await listing(of: path, features, session, isProbe: true)
                return RemoteEntry(name: "", kind: .directory, tag: [], isTagStrong: false)
            }
            let stat = try await ifExists {
                try await session.call(
                    "operations/stat",
                    RcloneCall(
                        fs: source.root, remote: RcloneName.text(path), opt: options(features, isFile: isFile)),
                    returning: RcloneStat.self)
            }
            guard let item = stat?.item else { return nil }
            var entry = try entry(item, features, in: path.parent)
            entry.name = name
            return entry
        }
    }

    func isDirectory(_ path: RemotePath) async throws -> Bool {
        try await host.reading { session in
            let features = try await features(session)
            let items = try await ifExists { try await listing(of: path, features, session) }
            // An object store has every directory, and most of them are empty.
            return items.map { !$0.isEmpty || !features.isBucket } ?? false
        }
    }

    func list(_ directory: RemotePath) async throws -> [RemoteEntry] {
        try await host.reading { session in
            let features = try await features(session)
            let items = try await ifExists { try await listing(of: directory, features, session) }
            return try entries(items ?? [], features, in: directory).found
        }
    }

    private func entries(
        _ items: [RcloneItem], _ features: RcloneFeatures, in directory: RemotePath
    ) throws -> (found: [RemoteEntry], leavesOut: Bool) {
        var entries: [RemoteEntry] = []
        var names: Set<RemotePath> = []
        var leavesOut = false
        for item in items {
            guard item.hasKnownSize else {
                leavesOut = true
                noteUnsized(directory.appending(RcloneName.decode(item.Name)))
                continue
            }
            let entry = try entry(item, features, in: directory)
            // Some backends have several items of one name; a path leads to the first one.
            guard RemotePath.isName(entry.name), names.insert(RemotePath([entry.name])).inserted else { continue }
            entries.append(entry)
        }
        return (entries, leavesOut)
    }

    private func noteUnsized(_ path: RemotePath) {
        guard hasReportedUnsized.withLock({ !exchange(&$0, with: true) }) else { return }
        report(
            "files whose size the backend does not know are not shown, such as '/\(path.names.joined(separator: "/"))'")
    }

    private func listing(
        of path: RemotePath, _ features: RcloneFeatures, _ session: RcloneSession, isProbe: Bool = false
    ) async throws -> [RcloneItem] {
        let parameters = RcloneCall(fs: source.root, remote: RcloneName.text(path), opt: options(features))
        return try await withThrowingTaskGroup(of: [RcloneItem]?.self) { group in
            group.addTask {
                let listing = try await session.call(
                    "operations/list", parameters, returning: RcloneListing.self, patience: Self.patience,
                    isProbe: isProbe)
                return listing.list ?? []
            }
            group.addTask {
                await self.checkBackend(in: path, features, session, isProbe: isProbe)
                return nil
            }
            defer { group.cancelAll() }
            for try await case let items? in group { return items }
            throw CancellationError()
        }
    }

    /// Looks one name up from time to time until the task is cancelled. rclone answers with a whole directory at once: meanwhile only
    /// such answers tell a large directory from a backend that has stopped answering. They are progress of the call, unless rclone itself
    /// answers that the backend cannot be reached.
    private func checkBackend(
        in path: RemotePath, _ features: RcloneFeatures, _ session: RcloneSession, isProbe: Bool
    ) async {
        let parameters = RcloneCall(
            fs: source.root, remote: RcloneName.text(path.appending(Self.marker)),
            opt: options(features, isFile: true))
        let context = CallContext.current
        while (try? await Task.sleep(for: checkInterval)) != nil {
            let isAnswer = await CallContext.$current.withValue(nil) { () async -> Bool in
                do {
                    _ = try await session.call(
                        "operations/stat", parameters, returning: RcloneNothing.self, isProbe: isProbe)
                    return true
                } catch let failure as RcloneFailure {
                    return failure.error(host.remote).code != .serverUnreachable
                } catch {
                    return false
                }
            }
            if isAnswer { context?.noteAnswer() }
        }
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        if let token {
            guard let rest = listings.take(token) else { throw FileProviderError(.pageExpired) }
            return listings.part(of: rest, limit)
        }
        return try await host.reading { session in
            let features = try await features(session)
            let items = try await listing(of: path, features, session)
            if items.isEmpty, !path.names.isEmpty, try await presentIfAny(path)?.kind != .directory {
                throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no directory on the remote")
            }
            await lookups.wasListed(path, count: items.count)
            let (entries, leavesOut) = try entries(items, features, in: path)
            var part = listings.part(of: entries[...], limit)
            part.leavesOut = leavesOut
            return part
        }
    }

    func endListing(_ token: [UInt8]) { _ = listings.take(token) }

    func quota() async throws -> RemoteQuota? {
        try await host.reading { session in
            guard try await features(session).hasQuota else { return nil }
            return try await session.call(
                "operations/about", RcloneCall(fs: source.root), returning: RcloneQuota.self
            ).quota
        }
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        // rclone's server has no preconditions: the file is looked up afterwards, and before where the tag does not say its size.
        @Sendable func file() async throws -> RemoteEntry {
            guard let entry = try await presentIfAny(path, isFile: true) else {
                throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no file on the remote")
            }
            guard tag == nil || tag == entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
            return entry
        }
        var (expected, size) = (tag, tag.flatMap(RcloneItem.size(ofTag:)))
        if size == nil {
            let before = try await file()
            (expected, size) = (before.tag, before.size ?? 0)
        }
        let length = size ?? 0
        let wanted = (range ?? 0..<length).clamped(to: 0..<length)
        let resumed = ResumedSink(sink, from: wanted.lowerBound)
        let version = expected
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    await Self.confirmVersion(of: resumed, from: wanted.lowerBound) {
                        guard let found = try? await file() else { return false }
                        return found.tag == version && !found.isTagUnsettled
                    }
                }
                defer { group.cancelAll() }
                try await host.reading { session in
                    let start = resumed.position
                    guard start < wanted.upperBound else { return }
                    try await session.download(
                        source.target(path), range: start..<wanted.upperBound, size: length, into: resumed)
                }
            }
        } catch let error as FileProviderError where [.noSuchItem, .malformedResponse].contains(error.code) {
            // It may be another version that has no such range.
            _ = try await file()
            throw error
        }
        let after = try await file()
        guard after.tag == expected else { throw FileProviderError(.versionNoLongerAvailable) }
        return after
    }

    /// Confirms what has come again and again until the task is cancelled: what came before a lookup that still finds the version is of
    /// that version.
    ///
    /// - Parameter isPresent: looks the file up.
    static func confirmVersion(
        of sink: ResumedSink, from start: Int64, every interval: Duration = confirmationInterval,
        isPresent: @Sendable () async -> Bool
    ) async {
        var last = start
        while (try? await Task.sleep(for: interval)) != nil {
            // Once for the same bytes: each answer counts as progress of the download, also of one that is stuck.
            let end = sink.position
            guard end > last else { continue }
            last = end
            if await isPresent() { sink.confirmVersion(of: start..<end) }
        }
    }
}
