import Control
import Logging
import SystemPackage

/// Domains that could not be mounted again because there was no room on the disk, as after a crash on a full one.
extension Domains {
    /// Mounts them when there is more room, until none is left.
    func mountWhenThereIsRoom() async {
        while !withoutRoom.isEmpty, !isShuttingDown {
            guard (try? await Task.sleep(for: Self.pauseForRoom)) != nil else { return }
            let available = store.availableBytes
            for name in withoutRoom.keys.sorted() {
                // A command may have mounted it, and unmounted it, meanwhile.
                guard let want = withoutRoom[name], Self.isWorthTrying(want, available) else { continue }
                guard want.unfinished < Self.attemptsToMountAgain else {
                    withoutRoom[name] = nil
                    logger.error(
                        "'\(name)' is not mounted again: \(want.unfinished) daemons have ended before it was mounted")
                    continue
                }
                withoutRoom[name]?.unfinished += 1
                await mountAgain(name)
            }
        }
    }

    /// The room that is missing can be on another disk, such as that with the directory to mount on.
    static func isWorthTrying(_ want: WantOfRoom, _ available: UInt64, at time: ContinuousClock.Instant = .now) -> Bool
    {
        available >= want.available && available - want.available > roomToTryWith
            || time - want.triedAt > pauseWithoutMoreRoom
    }

    /// An attempt to mount a domain again has failed.
    ///
    /// - Parameter available: how many bytes were free before it.
    func note(_ error: any Error, mounting name: String, available: UInt64) {
        let wasWaiting = withoutRoom[name] != nil
        withoutRoom[name] =
            store.isForWantOfRoom(error, available) ? WantOfRoom(reason: "\(error)", available: available) : nil
        // Not for each attempt.
        guard !wasWaiting || withoutRoom[name] == nil else { return }
        let hope = withoutRoom[name] == nil ? "" : "; it is tried again when there is more room"
        logger.error("'\(name)' cannot be mounted again: \(error)\(hope)")
    }

    // MARK: - For the next worker

    /// The mark of an earlier worker was inherited: only what found no room is mounted again.
    func resume(after inherited: FileDescriptor) {
        if let mark = MountedAgainMark(inherited: inherited) {
            withoutRoom = mark.withoutRoom
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
        "not mounted: there is no room on the disk (\(want.reason)); it is mounted when there is more room"
    }

    private static let pauseForRoom = Duration.seconds(2)
    /// Less is no reason for an attempt, which opens the whole replica.
    private static let roomToTryWith: UInt64 = 1 << 20
    private static let pauseWithoutMoreRoom = Duration.seconds(300)
}
