import Sync

/// What keeps a domain from calling its provider.
struct PauseReasons: Hashable, Sendable {
    var isPausedByUser = false
    /// Whether the domain waits while the network connection is metered.
    var avoidsMeteredConnection = false {
        didSet { if !avoidsMeteredConnection { isMetered = false } }
    }
    var isMetered = false {
        didSet { if !isMetered { isMeteredAllowed = false } }
    }
    /// Whether the user has resumed the domain since the connection is metered.
    private var isMeteredAllowed = false

    init(isPausedByUser: Bool, avoidsMeteredConnection: Bool) {
        self.isPausedByUser = isPausedByUser
        self.avoidsMeteredConnection = avoidsMeteredConnection
    }

    /// The user wants calls now, whatever keeps the domain from them.
    mutating func resume() {
        isPausedByUser = false
        isMeteredAllowed = isMetered
    }

    /// The reason that a user is told; nil if there is none.
    var pause: Connection.Pause? {
        if isPausedByUser { return .user }
        return avoidsMeteredConnection && isMetered && !isMeteredAllowed ? .metered : nil
    }
}
