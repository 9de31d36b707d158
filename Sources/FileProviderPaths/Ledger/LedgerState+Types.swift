extension LedgerState {
    package typealias Tick = Int
    package typealias Move = PossibleMoves.Move

    package struct Moment: Sendable {
        package var instant: ContinuousClock.Instant
        /// Seconds since 1970, for what outlives the process.
        package var date: Int64

        package init(instant: ContinuousClock.Instant, date: Int64) {
            self.instant = instant
            self.date = date
        }
    }

    package struct Settings: Sendable {
        /// How long, after the first response since, an unknown request may still be applied; longer on a slow server.
        /// Nil where the caller finds out by looking instead of waiting.
        package var grace: ClosedRange<Duration>?
        /// For how long finished requests are remembered, and for how long while there are more than `most` of them. The
        /// listing of a large directory takes long, and what it is compared with must not be forgotten before its end.
        let memory = Duration.seconds(3600)
        let shortMemory = Duration.seconds(600)
        let most = 50_000
        let mostUnknown = 2000
        /// By how much a listing may lag behind an acknowledged request.
        let lag = Duration.seconds(600)

        package init(grace: ClosedRange<Duration>? = nil) { self.grace = grace }
    }

    /// What a request does to each of its paths.
    package enum Effect: Sendable, Hashable, Codable {
        /// - Parameter tag: of the new content, where it is known.
        case written(tag: String?)
        case deleted
        /// What became of it is found out by looking: an unknown outcome puts no path in doubt.
        case changed
    }

    package enum Outcome: Sendable {
        case acknowledged(Effect)
        case refused
        /// The connection broke before the response: the server may have applied it, or may yet.
        case unknown(Effect)

        /// Nil where it is unknown.
        var isApplied: Bool? {
            switch self {
            case .acknowledged: true
            case .refused: false
            case .unknown: nil
            }
        }
    }

    /// The latest request for a path that has ended.
    package struct Finished: Sendable {
        package let path: [UInt8]
        /// When it ended.
        package let tick: Tick
        /// Of the latest request that was acknowledged.
        package internal(set) var effect: Effect?
        /// Whether a request without a response may have been applied after it.
        package internal(set) var isUncertain = false
        let at: ContinuousClock.Instant
        /// The same moment, for what outlives the process.
        let date: Int64

        /// Whether the content at the path was changed, or may have been.
        var isOfContent: Bool { isUncertain || effect != nil && effect != .changed }
    }

    package enum Doubt: Sendable, Equatable {
        /// The server has not responded to anything since.
        case serverIsSilent
        case until(ContinuousClock.Instant)
    }

    package enum Verdict: Sendable {
        /// No request for these paths was in flight since the observation was requested.
        case fresh
        /// The entries of these paths have to be observed again.
        case stale([Finished])
        /// So many requests ended since that not all are remembered.
        case expired
        /// Requests are in flight: their end decides.
        case inFlight(Set<Tick>)
    }

    /// What has to be written to disk: a record by its name, nil when it is over.
    package typealias DurableChange = (name: [UInt8], record: Record?)

    /// What outlives the process: a request that may have been applied, or may yet be, or what is known of a path.
    package struct Record: Codable, Sendable {
        /// What is known of the content at a path.
        struct Ended: Codable, Sendable {
            var effect: Effect?
            var isUncertain: Bool
        }

        /// Empty for requests of which only is known that they were in flight when the process was killed.
        var path: [UInt8]
        var tag: String?
        /// Seconds since 1970.
        var sentAt: Int64
        /// Whether the content was seen at its path, or acknowledged, since it was last deleted.
        var isSeen = false
        /// The move that the request makes: it has no path of its own.
        var move: Move?
        /// Nil for a request without a response.
        var ended: Ended?

        init(path: [UInt8], tag: String?, sentAt: Int64) {
            (self.path, self.tag, self.sentAt) = (path, tag, sentAt)
        }

        init(move: Move) {
            self.init(path: [], tag: nil, sentAt: 0)
            self.move = move
        }

        init(_ one: Finished, isUncertain: Bool) {
            self.init(path: one.path, tag: nil, sentAt: one.date)
            ended = Ended(effect: one.effect, isUncertain: isUncertain)
        }

        var name: [UInt8] {
            if let move { return move.key }
            if ended != nil { return Self.name(ofEnded: path) }
            return path + [0] + Array((tag ?? "").utf8)
        }

        /// No path and no identifier begins with a zero byte.
        static func name(ofEnded path: [UInt8]) -> [UInt8] { [0, 0] + path }
    }
}

extension LedgerState.Effect {
    var tag: String? {
        if case .written(let tag) = self { return tag }
        return nil
    }
}
