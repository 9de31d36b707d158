extension LedgerState {
    package typealias Tick = Int
    package typealias Move = PossibleMoves.Move
    package typealias Moment = LedgerMoment
    package typealias Effect = RequestEffect
    package typealias Finished = FinishedRequest
    package typealias Record = LedgerRecord
    package typealias DurableChange = LedgerRecord.Change

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
}
