/// Why a domain could not be mounted again: there was no room on the disk, or another error came once there was.
struct WantOfRoom: Codable, Hashable, Sendable {
    /// The error of the last attempt, in words.
    var reason: String
    /// Whether that was one of a full disk.
    var isFull = true
    /// How many bytes were free on the disk with the state directory before it.
    var available: UInt64
    /// When it ended.
    var triedAt = ContinuousClock.now
    /// How many attempts since it have begun and not ended.
    var unfinished = 0

    /// What is known after another attempt has failed.
    ///
    /// - Parameter isWaiting: whether an earlier attempt found no room.
    /// - Returns: nil for a domain that is not tried again.
    static func after(_ error: any Error, isFull: Bool, available: UInt64, isWaiting: Bool) -> WantOfRoom? {
        // What waits for days meets errors that pass, such as one of the network.
        isFull || isWaiting ? WantOfRoom(reason: "\(error)", isFull: isFull, available: available) : nil
    }
}

extension WantOfRoom {
    /// Also from a Yonder that knew fewer of these.
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            reason: try values.decode(String.self, forKey: .reason),
            isFull: try values.decodeIfPresent(Bool.self, forKey: .isFull) ?? true,
            available: try values.decodeIfPresent(UInt64.self, forKey: .available) ?? 0,
            triedAt: try values.decodeIfPresent(ContinuousClock.Instant.self, forKey: .triedAt) ?? .now,
            unfinished: try values.decodeIfPresent(Int.self, forKey: .unfinished) ?? 0)
    }
}
