import Control
import Logging

/// Domains that could not be mounted again because there was no room on the disk, as after a crash on a full one.
extension Domains {
    struct WantOfRoom: Sendable {
        /// The error of the last attempt, in words.
        var reason: String
        /// How many bytes were free before it.
        var available: UInt64
    }

    /// Mounts them when there is more room, until none is left.
    func mountWhenThereIsRoom() async {
        while !withoutRoom.isEmpty, !isShuttingDown {
            guard (try? await Task.sleep(for: Self.pauseForRoom)) != nil else { return }
            let available = store.availableBytes
            for (name, want) in withoutRoom where available > want.available { await mountAgain(name) }
        }
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

    /// What `yonder status` says of them.
    var wantsOfRoom: [String] {
        withoutRoom.sorted { $0.key < $1.key }.map { "'\($0.key)' is \(Self.text(for: $0.value))" }
    }

    static func text(for want: WantOfRoom) -> String {
        "not mounted: the disk with the state directory is full (\(want.reason)); it is mounted when there is more room"
    }

    private static let pauseForRoom = Duration.seconds(2)
}
