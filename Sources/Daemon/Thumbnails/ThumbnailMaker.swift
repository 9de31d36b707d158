import FUSE
import FileProvider
import Foundation
import Logging
import Replica
import Sync
import Syscalls
import SystemPackage

/// Makes thumbnails of dataless files of a domain, for programs that would read the files only to show them small.
actor ThumbnailMaker {
    private let engine: SyncEngine
    private let database: ReplicaDatabase
    private let cache: ThumbnailCache
    private let scaler: ImageScaler
    /// Where the domain is mounted; nil before.
    private let mountPoint: @Sendable () -> FilePath?
    /// Tells programs that watch a file to look again.
    private let announce: @Sendable (InodeNumber) -> Void
    private let logger: Logger

    /// In the order in which they are made.
    private var wanted: [InodeNumber] = []
    private var underWay: Set<InodeNumber> = []
    private var waiters: [InodeNumber: [OneShot<Void>]] = [:]
    /// The content versions that have no thumbnail, or whose thumbnail could not be made. Forgotten when the remote was away in between.
    private var without: [InodeNumber: [UInt8]] = [:]
    /// When a program was last refused a file of which no program was told yet.
    private var refusals: [InodeNumber: ContinuousClock.Instant] = [:]
    /// When programs were told last to look at a file again.
    private var told: [InodeNumber: ContinuousClock.Instant] = [:]
    private var work: Task<Void, Never>?
    private var isStopped = false
    private var hasComplained = false

    private static let mostWithout = 10_000
    private static let mostWanted = 10_000
    /// A program that wants one picture of a directory soon wants those after it. It finds their thumbnails then, and reads none.
    private static let ahead = 60
    private static let mostInBatch = 40
    private static let imagesAtOnce = 2
    private static let mostTold = 1_000
    private static let pauseAfterTelling = Duration.seconds(60)
    private static let timeForGivingUp = Duration.seconds(2)
    private static let patience = Duration.seconds(10)

    /// An item, and what its thumbnail is stored for.
    private struct Target: Sendable {
        var item: ItemRecord
        var subject: ThumbnailCache.Subject
    }

    init(
        engine: SyncEngine, database: ReplicaDatabase, cache: ThumbnailCache, scaler: ImageScaler,
        mountPoint: @escaping @Sendable () -> FilePath?, announce: @escaping @Sendable (InodeNumber) -> Void,
        logger: Logger
    ) {
        self.engine = engine
        self.database = database
        self.cache = cache
        self.scaler = scaler
        self.mountPoint = mountPoint
        self.announce = announce
        self.logger = logger
        scaler.clear()
    }

    /// Follows what happens to the domain until its engine is stopped.
    func follow(_ events: AsyncStream<SyncEvent>) async {
        for await event in events {
            switch event.kind {
            case .online: without = [:]
            case .downloaded: if let number = event.number { await removeFailures(of: number) }
            default: break
            }
        }
    }

    /// A program that was refused a file can read it now, and has to learn of that.
    private func removeFailures(of number: InodeNumber) async {
        let areRemoved = try? await BlockingWork.run { [self, database, cache] () throws -> Bool in
            guard let item = try database.item(ofInode: number), item.inode.shownContent == .materialized,
                let subject = try subject(of: item)
            else { return false }
            return cache.removeFailures(of: subject)
        }
        if areRemoved == true, !isStopped { announce(number) }
    }

    /// Makes the thumbnail of a file that a program wants to read to show it small, and begins with those of the files after it.
    /// Returns when there is one or none can be made, or else after some seconds.
    func make(_ number: InodeNumber) async {
        guard !isStopped, await checkScaler() else { return }
        add(number)
        if underWay.contains(number) {
            let end = OneShot<Void>()
            waiters[number, default: []].append(end)
            let limit = Task {
                try? await Task.sleep(for: Self.patience)
                end.give(.success(()))
            }
            try? await end.value { end.give(.success(())) }
            limit.cancel()
        }
        await tell(of: number)
    }

    /// A program that has asked too early looks again when the file seems to have changed. Tumbler, Thunar's thumbnailer, removes the
    /// thumbnails of a file that it cannot read: they are put back. Nautilus and Caja record that it has none: that is removed.
    private func tell(of number: InodeNumber) async {
        if let last = told[number], .now - last < Self.pauseAfterTelling { return }
        guard refusals.updateValue(.now, forKey: number) == nil else { return }
        let made = try? await BlockingWork.run { [self, cache] in
            try target(number).flatMap { target in cache.images(of: target.subject).map { (target.subject, $0) } }
        }
        guard let (subject, images) = made ?? nil else { return refusals[number] = nil }
        Task {
            // It may ask several times, in several ways, before it gives up.
            while let last = refusals[number], .now - last < Self.timeForGivingUp {
                try await Task.sleep(until: last + Self.timeForGivingUp, clock: .continuous)
            }
            refusals[number] = nil
            if told.count >= Self.mostTold { told = [:] }
            told[number] = .now
            try await putBack(images, of: subject)
            if !isStopped { announce(number) }
            try await Task.sleep(for: Self.timeForGivingUp)
            try await putBack(images, of: subject)
        }
    }

    private func putBack(_ images: [String: PNGFile], of subject: ThumbnailCache.Subject) async throws {
        guard !isStopped else { return }
        try await BlockingWork.run { [cache] in
            if cache.images(of: subject) == nil { try cache.store(images, of: subject) }
            _ = cache.removeFailures(of: subject)
        }
    }

    /// Begins no more, and ends what is under way soon. Waits neither for the remote nor for the disk of the cache.
    func cancel() {
        isStopped = true
        work?.cancel()
    }

    private func add(_ number: InodeNumber) {
        guard !underWay.contains(number), wanted.count < Self.mostWanted else { return }
        underWay.insert(number)
        wanted.append(number)
        if work == nil { work = Task { await makeWanted() } }
    }

    private func makeWanted() async {
        while !wanted.isEmpty, !Task.isCancelled {
            let numbers = Array(wanted.prefix(Self.mostInBatch))
            wanted.removeFirst(numbers.count)
            let targets = await targets(numbers)
            let found = Set(targets.map(\.item.inode.number))
            for number in numbers where !found.contains(number) { end(number) }
            underWay.formUnion(found)
            await make(targets)
        }
        for number in wanted { end(number) }
        wanted = []
        work = nil
    }

    private func end(_ number: InodeNumber) {
        underWay.remove(number)
        for waiter in waiters.removeValue(forKey: number) ?? [] { waiter.give(.success(())) }
    }

    private func checkScaler() async -> Bool {
        if (try? await BlockingWork.run { [scaler] in scaler.isAvailable }) == true { return true }
        if !hasComplained {
            logger.notice(
                "no thumbnails are made: '\(ImageScaler.program)' is not installed (Debian: libgdk-pixbuf2.0-bin)")
        }
        hasComplained = true
        return false
    }

    private func make(_ targets: [Target]) async {
        let subjects = Dictionary(targets.map { ($0.item.id, $0) }, uniquingKeysWith: { first, _ in first })
        let (found, continuation) = AsyncStream.makeStream(of: (ItemRecord, ThumbnailOutcome).self)
        let fetching = Task { [engine] in
            await engine.fetchThumbnails(of: targets.map(\.item)) { continuation.yield(($0, $1)) }
            continuation.finish()
        }
        await withTaskCancellationHandler {
            await withTaskGroup(of: Void.self) { group in
                var running = 0
                for await (item, outcome) in found {
                    guard let target = subjects[item.id] else { continue }
                    if running >= Self.imagesAtOnce { await group.next() } else { running += 1 }
                    group.addTask { await self.finish(target, outcome) }
                }
            }
        } onCancel: {
            fetching.cancel()
        }
        await fetching.value
        for target in targets { end(target.item.inode.number) }
    }

    /// Some files and those after the first of them, as far as they need a thumbnail.
    private func targets(_ numbers: [InodeNumber]) async -> [Target] {
        let (without, underWay) = (without, underWay)
        let found = try? await BlockingWork.run { [self, database, cache] in
            var all = numbers
            if let first = try numbers.first.flatMap({ try database.item(ofInode: $0) }), let parent = first.parent {
                all += try database.entries(of: parent, after: first.id, limit: Self.ahead)
                    .filter { PictureName.isPicture($0.name) && !underWay.contains($0.inode.number) }
                    .map(\.inode.number)
            }
            return try all.compactMap(target).filter { target in
                without[target.item.inode.number] != target.item.base.version.contentVersion
                    && cache.images(of: target.subject) == nil
            }
        }
        return found ?? []
    }

    /// Reads the database.
    ///
    /// - Returns: nil for a file that needs none.
    private nonisolated func target(_ number: InodeNumber) throws -> Target? {
        guard let item = try database.item(ofInode: number), item.inode.shownContent != .materialized else {
            return nil
        }
        return try subject(of: item).map { Target(item: item, subject: $0) }
    }

    /// Reads the database.
    ///
    /// - Returns: nil for a file that has no path.
    private nonisolated func subject(of item: ItemRecord) throws -> ThumbnailCache.Subject? {
        guard let mountPoint = mountPoint(), let names = try database.path(of: item.inode.number) else { return nil }
        let components = names.compactMap { FilePath.Component(fileNamed: $0) }
        guard components.count == names.count else { return nil }
        return ThumbnailCache.Subject(
            mountPoint.appending(components), modifiedAt: item.inode.modifiedAt.seconds)
    }

    private func finish(_ target: Target, _ outcome: ThumbnailOutcome) async {
        let item = target.item
        do {
            switch outcome {
            case .image(let image):
                let images = try await scaler.scale(image, to: ThumbnailCache.sizes.map(\.pixels))
                try await BlockingWork.run { [cache] in
                    try cache.store(
                        Dictionary(uniqueKeysWithValues: zip(ThumbnailCache.sizes.map(\.name), images)),
                        of: target.subject)
                    _ = cache.removeFailures(of: target.subject)
                }
            case .none: note(without: item)
            case .failed(let error): throw error
            }
        } catch {
            logger.debug("'\(item.name)' gets no thumbnail: \(error)")
            if Self.isOfItem(error) { note(without: item) }
        }
        end(item.inode.number)
    }

    /// Whether an error comes again with the same content: it says something of the item, and not of the remote or of this machine.
    private static func isOfItem(_ error: any Error) -> Bool {
        switch error {
        case let error as FileProviderError: !error.isOfDomain
        case is ImageScaler.Unreadable: true
        case let error as ImageScaler.Failure: error.wasKilled
        case let error as ChildProcess.RunError: error == .timedOut
        default: false
        }
    }

    private func note(without item: ItemRecord) {
        if without.count >= Self.mostWithout { without = [:] }
        without[item.inode.number] = item.base.version.contentVersion
    }
}
