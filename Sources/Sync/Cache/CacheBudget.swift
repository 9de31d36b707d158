import FileProvider
import Replica
import Synchronization
import SystemPackage

/// How much content may be here, and for how long.
package struct CacheLimits: Hashable, Sendable {
    /// In bytes; nil for as many as the disk holds.
    package var bytes: Int64?
    /// How long content is kept after its last open; nil for ever.
    package var age: Duration?

    package init(bytes: Int64? = nil, age: Duration? = nil) {
        self.bytes = bytes
        self.age = age
    }
}

/// Gives up content for ``CacheBudget``. It is passed to each call, because the transfers that give up content need the
/// budget themselves.
protocol ContentEvictor: Sendable {
    /// Makes a file dataless unless it is in use.
    ///
    /// - Returns: the number of bytes freed; nil when the file stays.
    func evictIfUnused(_ number: InodeNumber) async -> Int64?

    /// Records what idle transfers have fetched, so that the database knows how much is here.
    func settleIdle() async
}

/// Keeps local content within the user's limit and the disk from running full: it evicts the least recently used
/// files, when content was recorded or space is needed.
actor CacheBudget {
    private let replica: Replica
    private let accessTimes: AccessTimes
    private let warnings: Warnings
    private nonisolated let limits: Mutex<CacheLimits>
    private var pass: Task<Int64, Never>?
    private var ageing: Task<Void, Never>?
    private var isStarted = false
    /// How many need that nothing is given up but for lack of room.
    private var holds = 0
    private nonisolated let isOver = Mutex(false)
    private nonisolated let reservations = SpaceReservations()
    /// The most bytes that did not fit, of fetches that no process waited for (true) and of others.
    private nonisolated let refused = Mutex<[Bool: Int64]>([:])
    private nonisolated let freeSpace: @Sendable () -> FreeSpace?
    private let pause: @Sendable (Duration) async -> Void
    private nonisolated let signal = WakeSignal()
    private nonisolated let writing = WakeSignal()

    private static let shortestPause = Duration.milliseconds(50)
    private static let atOnce = 128
    private static let patience = Duration.seconds(1)
    /// How long the fetches that have reserved space may make no progress.
    private static let patienceWithOthers = Duration.seconds(10)
    private static let pauseBetweenLooks = Duration.milliseconds(20)
    private static let longestSleep = Duration.seconds(3600)
    private static let pauseWithoutRoom = Duration.seconds(5)

    /// - Parameters:
    ///   - freeSpace: of the disk with the content; nil for the file system's.
    ///   - pause: lets time pass while a fetch waits for space.
    init(
        replica: Replica, accessTimes: AccessTimes, warnings: Warnings, limits: CacheLimits,
        freeSpace: (@Sendable () -> FreeSpace?)? = nil,
        pause: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        self.freeSpace = freeSpace ?? { FreeSpace(replica.directory) }
        self.pause = pause
        self.replica = replica
        self.accessTimes = accessTimes
        self.warnings = warnings
        self.limits = Mutex(limits)
    }

    /// Content was recorded, or may be given up now. Returns at once; from any thread.
    nonisolated func wake() {
        if limits.withLock({ $0.bytes != nil }) { signal.wake() }
    }

    /// Something was changed on the mount: programs may be writing. Returns at once; from any thread.
    nonisolated func noteLocalChange() { writing.wake() }

    /// Other limits hold from now on.
    func keep(to limits: CacheLimits, evictor: any ContentEvictor) {
        self.limits.withLock { $0 = limits }
        guard isStarted else { return }
        ageing?.cancel()
        startAgeing(evictor)
        wake()
    }

    /// Gives nothing up for the sake of the limits as long as something is under way that needs all of it here.
    func whileNothingIsTrimmed<Value: Sendable>(
        _ body: @Sendable () async throws -> Value
    ) async rethrows -> Value {
        holds += 1
        defer {
            holds -= 1
            wake()
        }
        return try await body()
    }

    /// A file was closed: it may be what was too much.
    nonisolated func wasClosed() {
        if isOver.withLock({ $0 }) { signal.wake() }
    }

    func start(evictor: any ContentEvictor) {
        isStarted = true
        startAgeing(evictor)
        signal.run {
            let start = ContinuousClock.now
            await self.keepLimit(evictor)
            return max(Self.shortestPause, (ContinuousClock.now - start) * 4)
        }
        writing.run { await self.keepRoomForWriters(evictor) }
        wake()
    }

    private func startAgeing(_ evictor: any ContentEvictor) {
        guard let age = limits.withLock({ $0.age }) else { return ageing = nil }
        ageing = Task {
            while !Task.isCancelled {
                await self.giveUpWhatIsOld(age, evictor)
                // Nothing becomes too old sooner than a twentieth of the age after it could have been.
                try? await Task.sleep(for: min(Self.longestSleep, max(.milliseconds(100), age / 20)))
            }
        }
    }

    func stop() {
        signal.stop()
        writing.stop()
        ageing?.cancel()
        pass?.cancel()
    }

    // MARK: - The disk

    /// Makes sure that the disk has space for a fetch beside the reserve, which is left to local writes that the
    /// remote does not have, and beside what other fetches have reserved.
    ///
    /// - Parameters:
    ///   - number: the file that it is for, which stays.
    ///   - isBackground: whether no process waits for it.
    /// - Returns: the space, which is the fetch's until it is released.
    /// - Throws: `posix` with ENOSPC when there is none, with all given up that can be; `userCancelled`.
    func admit(
        _ bytes: Int64, for number: InodeNumber, isBackground: @Sendable () -> Bool, evictor: any ContentEvictor
    ) async throws(FileProviderError) -> SpaceReservations.Reservation {
        func shortage() -> Int64 {
            let needed = bytes.saturatingAdd(reservations.bytes)
            return freeSpace()?.shortage(of: needed, isBackground: isBackground()) ?? 0
        }
        var (hasDeleted, hasTrimmed, patience) = (false, false, Duration.zero)
        var reserved: Int64 = 0
        while case let short = shortage(), short > 0 {
            // Nothing is evicted for a fetch that is not wanted any more.
            if Task.isCancelled { throw FileProviderError(.userCancelled) }
            guard hasDeleted else {
                hasDeleted = true
                await deleteRemoved()
                continue
            }
            guard hasTrimmed else {
                hasTrimmed = true
                // A file that was still open frees its space when it is closed.
                if await trim(except: number, evictor, while: { $0 < short }) > 0 { patience = Self.patience }
                continue
            }
            // Other fetches may end before they have filled all that they have reserved.
            if short <= reservations.bytes {
                if reservations.bytes != reserved {
                    (reserved, patience) = (reservations.bytes, Self.patienceWithOthers)
                }
            } else if reserved > 0, reservations.bytes == 0 {
                // They have filled it: what they have fetched may be evicted now.
                (reserved, hasTrimmed) = (0, false)
                continue
            }
            guard patience > .zero else {
                let lane = isBackground()
                refused.withLock {
                    $0[lane] = max($0[lane] ?? 0, bytes)
                    warnings.report(Self.fullDisk, of: .freeSpace)
                }
                throw FileProviderError.posix(
                    .noSpace, "the disk is full: what can be evicted makes no room for \(bytes) bytes more")
            }
            patience -= Self.pauseBetweenLooks
            await pause(Self.pauseBetweenLooks)
        }
        return reservations.reserve(bytes)
    }

    private static let fullDisk =
        "the disk is full: not everything that is read or kept downloaded fits; 'yonder evict' and 'yonder unpin' free space"

    /// Withdraws the warning of a full disk when all that was refused would fit. From any thread.
    nonisolated func withdrawWarningIfPossible() {
        refused.withLock { refused in
            guard !refused.isEmpty, let space = freeSpace() else { return }
            let fits = refused.allSatisfy { isBackground, bytes in
                space.shortage(of: bytes.saturatingAdd(reservations.bytes), isBackground: isBackground) <= 0
            }
            guard fits else { return }
            refused = [:]
            warnings.succeeded(.freeSpace)
        }
    }

    /// The disk was full while bytes were written to it: gives up at least as many, but not of the file that they are for.
    ///
    /// - Returns: whether it is worth another try.
    func makeRoom(_ bytes: Int64, for number: InodeNumber? = nil, evictor: any ContentEvictor) async -> Bool {
        let before = freeSpace()?.shortage(of: bytes) ?? 0
        let freed = max(before.saturatingSubtract(await shortageWithoutRemoved(of: bytes)), 0)
        if freed > 0, freed >= bytes { return true }
        let evicted = await trim(except: number, evictor) { freed.saturatingAdd($0) < bytes }
        return freed > 0 || evicted > 0
    }

    /// Keeps the reserve free while programs write: the kernel writes into content files without asking, so the room is
    /// looked at again before it can have been filled.
    ///
    /// - Returns: how long it is not looked at again when no program writes.
    private func keepRoomForWriters(_ evictor: any ContentEvictor) async -> Duration {
        var (last, rest): (FreeSpace?, Duration) = (nil, Self.shortestPause)
        while let space = freeSpace() {
            let shortage = await space.shortage(of: 0) > 0 ? shortageWithoutRemoved(of: 0) : 0
            // A program that has a file open and writes nothing must not cause twenty wake-ups a second.
            rest = space == last ? min(rest * 2, Self.longestRest) : Self.shortestPause
            last = space
            var pause = min(max(space.timeToFill, rest), Self.longestPauseOfWriters)
            if shortage > 0, await trim(except: nil, evictor, while: { $0 < shortage }) == 0 {
                pause = Self.pauseWithoutRoom
            }
            let isWritten = (try? replica.database.filesBeingWritten().isEmpty) == false
            guard isWritten, !Task.isCancelled else { return pause }
            try? await Task.sleep(for: pause)
        }
        return Self.pauseWithoutRoom
    }

    private static let longestPauseOfWriters = Duration.seconds(30)
    private static let longestRest = Duration.seconds(1)

    /// Frees the blocks of what was removed or evicted, which it has until that is on the disk.
    private func deleteRemoved() async {
        try? await BlockingWork.run { [replica] in try replica.database.deleteWithdrawnFiles() }
    }

    /// How many bytes are missing for so many more when the blocks of what was removed are free.
    private func shortageWithoutRemoved(of bytes: Int64) async -> Int64 {
        await deleteRemoved()
        return freeSpace()?.shortage(of: bytes) ?? 0
    }

    /// From the limit down to nine tenths of it, so that not every download has to make room.
    private func keepLimit(_ evictor: any ContentEvictor) async {
        guard holds == 0, let limit = limits.withLock({ $0.bytes }) else { return isOver.withLock { $0 = false } }
        do {
            let used = try replica.database.localBytes()
            warnings.succeeded(.localContent)
            guard used > limit else { return isOver.withLock { $0 = false } }
            isOver.withLock { $0 = true }
            let target = limit / 10 * 9
            _ = await trim(except: nil, evictor) { used.saturatingSubtract($0) > target }
            let left = try replica.database.localBytes()
            isOver.withLock { $0 = left > limit }
        } catch {
            warnings.report("how much content is here cannot be found out: \(error)", of: .localContent)
        }
    }

    /// Evicts content that was not opened for this long.
    private func giveUpWhatIsOld(_ age: Duration, _ evictor: any ContentEvictor) async {
        guard holds == 0 else { return }
        let oldest = FileTimestamp.now.advanced(by: .zero - age).nanosecondsSince1970
        guard (try? replica.database.evictionCandidates(after: nil, limit: 1).first?.usedAt ?? .max) ?? .max < oldest
        else { return }
        _ = await trim(except: nil, evictor, usedBefore: oldest) { _ in true }
    }

    /// Gives up content for as long as it is needed, one pass at a time.
    ///
    /// - Parameters:
    ///   - oldest: what was used since then, in nanoseconds since 1970, stays.
    ///   - isNeeded: asked before each file, with the bytes that have come back in this pass.
    /// - Returns: how many bytes came back.
    private func trim(
        except number: InodeNumber?, _ evictor: any ContentEvictor, usedBefore oldest: Int64 = .max,
        while isNeeded: @escaping @Sendable (Int64) -> Bool
    ) async -> Int64 {
        while let current = pass {
            _ = await current.value
            // The first waiter clears it: awaiting a finished task need not yield to the others.
            if pass == current { pass = nil }
        }
        let task = Task { [replica, accessTimes, warnings] in
            await evictor.settleIdle()
            await accessTimes.write()
            var freed: Int64 = 0
            var last: EvictionCandidate?
            do {
                while isNeeded(freed), !Task.isCancelled {
                    let candidates = try replica.database.evictionCandidates(after: last, limit: Self.atOnce)
                    guard let next = candidates.last else { break }
                    last = next
                    for candidate in candidates where candidate.number != number && candidate.usedAt < oldest {
                        guard isNeeded(freed), !Task.isCancelled else { break }
                        freed = freed.saturatingAdd(await evictor.evictIfUnused(candidate.number) ?? 0)
                    }
                    if next.usedAt >= oldest { break }
                }
            } catch {
                warnings.report("what could be evicted cannot be found out: \(error)", of: .localContent)
            }
            // One sync for all of them: until then they have their blocks.
            if freed > 0 { await self.deleteRemoved() }
            return freed
        }
        pass = task
        let freed = await task.value
        if pass == task { pass = nil }
        return freed
    }
}
