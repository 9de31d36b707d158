import FUSE
import Synchronization
import FileProvider
import SystemPackage
import Volume

/// Where requests wait for what has to be provided first. One that is interrupted leaves with EINTR, and what only it
/// waited for is given up.
final class WaitingRoom: Sendable {
    private let provisioning: any Provisioning
    /// Something provided may be evicted again before the request comes to use it; not for ever.
    private static let mostRounds = 64

    init(provisioning: any Provisioning) {
        self.provisioning = provisioning
    }

    /// Answers a request: at once when it can be, else when what it lacks has been provided.
    ///
    /// - Parameters:
    ///   - attempt: asks the volume, first with false, and again with true each time its absence was seen to.
    ///   - attemptUnlisted: asks the volume when the listing that it lacks cannot be had because the remote is away, or
    ///     wants other credentials; nil where it cannot do without.
    ///   - succeed: gives the answer.
    func answer<Held: Reply & ~Copyable, Answer>(
        _ request: Request, _ reply: consuming Held,
        attempt: @escaping @Sendable (_ isProvided: Bool) throws(Obstacle) -> Answer,
        attemptUnlisted: (@Sendable () throws(Obstacle) -> Answer)? = nil,
        succeed: @escaping @Sendable (consuming Held, Answer) -> Void
    ) {
        let absence: Absence
        switch Self.outcome(of: attempt, false) {
        case .success(let answer): return succeed(reply, answer)
        case .failure(.refused(let error)): return reply.fail(error)
        case .failure(.absent(let missing)): absence = missing
        }
        let caller = Requester(
            processIdentifier: request.caller.processID, userIdentifier: request.caller.userID,
            groupIdentifier: request.caller.groupID)
        let ticket = Ticket()
        let parked = Parked(reply) { parked in
            ticket.cancel()
            parked.take()?.fail(.interrupted)
        }
        wait(
            for: absence, caller: caller, parked, ticket, round: 1, attempt: attempt,
            attemptUnlisted: attemptUnlisted, succeed: succeed)
    }

    /// Whether a listing cannot be had as long as the remote is away.
    private static func isAway(_ error: Errno, for absence: Absence) -> Bool {
        guard case .listing = absence else { return false }
        return error == .noRouteToHost || error == .keyRejected
    }

    private func wait<Held: Reply & ~Copyable, Answer>(
        for absence: Absence, caller: Requester, _ parked: Parked<Held>, _ ticket: Ticket, round: Int,
        attempt: @escaping @Sendable (Bool) throws(Obstacle) -> Answer,
        attemptUnlisted: (@Sendable () throws(Obstacle) -> Answer)?,
        succeed: @escaping @Sendable (consuming Held, Answer) -> Void
    ) {
        let cancellation = provisioning.provide(absence, for: caller) { error in
            if let error {
                if error == .staleNFSFileHandle, round < Self.mostRounds,
                    case .failure(.absent(let newest)) = Self.outcome(of: attempt, false), newest != absence
                {
                    // An open file that was not read from follows the remote to its new version.
                    self.wait(
                        for: newest, caller: caller, parked, ticket, round: round + 1, attempt: attempt,
                        attemptUnlisted: attemptUnlisted, succeed: succeed)
                    return
                }
                if Self.isAway(error, for: absence), let attemptUnlisted,
                    case .success(let answer) = Result(catching: { () throws(Obstacle) in try attemptUnlisted() })
                {
                    if let reply = parked.take() { succeed(reply, answer) }
                    return
                }
                parked.take()?.fail(error)
                return
            }
            switch Self.outcome(of: attempt, true) {
            case .success(let answer):
                if let reply = parked.take() { succeed(reply, answer) }
            case .failure(.refused(let error)):
                parked.take()?.fail(error)
            case .failure(.absent(let absence)):
                guard round < Self.mostRounds else {
                    parked.take()?.fail(.ioError)
                    return
                }
                self.wait(
                    for: absence, caller: caller, parked, ticket, round: round + 1, attempt: attempt,
                    attemptUnlisted: attemptUnlisted, succeed: succeed)
            }
        }
        ticket.hold(cancellation)
    }

    private static func outcome<Answer>(
        of attempt: (Bool) throws(Obstacle) -> Answer, _ isProvided: Bool
    ) -> Result<Answer, Obstacle> {
        Result { () throws(Obstacle) in try attempt(isProvided) }
    }
}

/// What a waiting request has to cancel when it leaves: it may leave before that is known.
private final class Ticket: Sendable {
    private struct State {
        var cancellation: (any Cancellation)?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func hold(_ cancellation: any Cancellation) {
        let isCancelled = state.withLock { state in
            state.cancellation = cancellation
            return state.isCancelled
        }
        if isCancelled { cancellation.cancel() }
    }

    func cancel() {
        let cancellation = state.withLock { state in
            state.isCancelled = true
            return state.cancellation
        }
        cancellation?.cancel()
    }
}
