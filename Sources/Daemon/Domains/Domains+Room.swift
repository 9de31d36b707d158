import Logging
import SystemPackage

/// Domains that could not be mounted again because there was no room on the disk, as after a crash on a full one.
extension Domains {
    /// Mounts them when there is more room, until none is left.
    func mountWhenThereIsRoom() async {
        var pause = Self.shortestPauseForRoom
        while !withoutRoom.isEmpty, !isShuttingDown {
            guard (try? await Task.sleep(for: pause)) != nil else { return }
            pause = Self.pauseForRoom(after: pause)
            let available = store.availableBytes
            for name in withoutRoom.keys.sorted() {
                // A command may have mounted it, and unmounted it, meanwhile.
                guard let want = withoutRoom[name], Self.isWorthTrying(want, available) else { continue }
                // More room may follow.
                pause = Self.shortestPauseForRoom
                guard want.unfinished < Self.attemptsToMountAgain else {
                    withoutRoom[name] = nil
                    logger.error(
                        "'\(name)' is not mounted again: \(want.unfinished) daemons have ended before it was mounted")
                    continue
                }
                withoutRoom[name]?.unfinished += 1
                await mountAgain(name)
                guard !isShuttingDown, !Task.isCancelled else {
                    // No crash has ended it.
                    withoutRoom[name]?.unfinished = want.unfinished
                    return
                }
            }
        }
    }

    /// - Returns: how long to wait for more room after a wait in which there was none: the wait may take days.
    static func pauseForRoom(after last: Duration) -> Duration { min(longestPauseForRoom, last * 3 / 2) }

    /// The room that is missing can be on another disk, such as that with the directory to mount on.
    static func isWorthTrying(_ want: WantOfRoom, _ available: UInt64, at time: ContinuousClock.Instant = .now) -> Bool
    {
        want.isFull && available >= want.available && available - want.available > roomToTryWith
            || time - want.triedAt > pauseWithoutMoreRoom
    }

    /// An attempt to mount a domain again has failed.
    ///
    /// - Parameter available: how many bytes were free before it.
    func note(_ error: any Error, mounting name: String, available: UInt64) {
        // That says nothing of the domain.
        if isShuttingDown || Task.isCancelled { return }
        let before = withoutRoom[name]
        let want = WantOfRoom.after(
            error, isFull: store.isForWantOfRoom(error, available), available: available, isWaiting: before != nil)
        withoutRoom[name] = want
        // Not for each attempt.
        if let before, let want, before.isFull == want.isFull, want.isFull || before.reason == want.reason { return }
        let hope = want.map { "; \(Self.hope(for: $0))" } ?? ""
        logger.error("'\(name)' cannot be mounted again: \(error)\(hope)")
    }

    // MARK: - For the next worker

    /// The mark of an earlier worker was inherited: only what found no room is mounted again.
    func resume(after inherited: FileDescriptor) {
        if let mark = MountedAgainMark(inherited: inherited) {
            do {
                withoutRoom = try mark.withoutRoom
            } catch {
                logger.warning("which domains found no room is not known, and they are not mounted again: \(error)")
            }
            self.mark = mark
        } else {
            manager.remove(MountedAgainMark.name)
            storeMark()
        }
    }

    /// All domains were tried.
    func storeMark() {
        do {
            let mark = try MountedAgainMark()
            self.mark = mark
            try mark.write(withoutRoom)
            try mark.store(in: manager)
        } catch {
            logger.warning("the next daemon will mount again what is unmounted meanwhile: \(error)")
        }
    }

    func noteWithoutRoom() {
        do {
            try mark?.write(withoutRoom)
        } catch {
            logger.warning("the next daemon will not know which domains found no room: \(error)")
        }
    }

    // MARK: - In words

    /// What `yonder status` says of them.
    var wantsOfRoom: [String] {
        withoutRoom.sorted { $0.key < $1.key }.map { "'\($0.key)' is \(Self.text(for: $0.value))" }
    }

    static func text(for want: WantOfRoom) -> String {
        let reason = want.isFull ? "there is no room on the disk (\(want.reason))" : want.reason
        return "not mounted: \(reason); \(hope(for: want))"
    }

    private static func hope(for want: WantOfRoom) -> String {
        want.isFull ? "it is mounted when there is more room" : "it is tried again every five minutes"
    }

    static let shortestPauseForRoom = Duration.seconds(2)
    static let longestPauseForRoom = Duration.seconds(60)
    /// Less is no reason for an attempt, which opens the whole replica.
    private static let roomToTryWith: UInt64 = 1 << 20
    private static let pauseWithoutMoreRoom = Duration.seconds(300)
}
