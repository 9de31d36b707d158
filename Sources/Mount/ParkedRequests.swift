import FUSE
import Synchronization
import FileProvider
import SystemPackage
import Volume

/// Answers requests, and parks those with a missing prerequisite until it is fulfilled. An interrupted request fails with
/// EINTR and cancels its prerequisite; it is not attempted again.
final class ParkedRequests: Sendable {
    private let provisioning: any Provisioning
    /// The maximum number of attempts of one request: a fulfilled prerequisite may be evicted before it is used.
    private static let maximumRounds = 64

    init(provisioning: any Provisioning) {
        self.provisioning = provisioning
    }

    /// Answers a request at once if possible, else after its prerequisite is fulfilled.
    ///
    /// - Parameters:
    ///   - worksUnlisted: whether the request may succeed without the listing that it requires, when the remote is
    ///     unreachable or rejects the credentials; `attempt` is then called with ``Attempt/unlisted``.
    ///   - attempt: asks the volume.
    ///   - undo: takes back what an attempt has counted for the kernel, when the request was interrupted during the attempt.
    ///   - refuse: sends the error of an attempt, or of a prerequisite.
    ///   - succeed: sends the answer.
    func answer<Held: Reply & ~Copyable, Answer>(
        _ request: Request, _ reply: consuming Held, worksUnlisted: Bool = false,
        attempt: @escaping @Sendable (Attempt) throws(VolumeError) -> Answer,
        undo: @escaping @Sendable (Answer) -> Void = { _ in },
        refuse: @escaping @Sendable (consuming Held, Errno) -> Void = { reply, error in reply.fail(error) },
        succeed: @escaping @Sendable (consuming Held, Answer) -> Void
    ) {
        let prerequisite: Prerequisite
        switch Self.outcome(of: attempt, .first) {
        case .success(let answer): return succeed(reply, answer)
        case .failure(.refused(let error)): return refuse(reply, error)
        case .failure(.needs(let missing)): prerequisite = missing
        }
        let caller = Requester(
            processIdentifier: request.caller.processID, userIdentifier: request.caller.userID,
            groupIdentifier: request.caller.groupID)
        let pending = PendingCancellation()
        let parked = ParkedReply(reply) { parked in
            pending.cancel()
            parked.take()?.fail(.interrupted)
        }
        let waiting = WaitingRequest(
            caller: caller, parked: parked, pending: pending, worksUnlisted: worksUnlisted, attempt: attempt,
            undo: undo, refuse: refuse, succeed: succeed)
        wait(for: prerequisite, waiting, round: 1)
    }

    /// Answers a request whose answer says nothing but that it was carried out.
    func answer(
        _ request: Request, _ reply: consuming EmptyReply, worksUnlisted: Bool = false,
        attempt: @escaping @Sendable (Attempt) throws(VolumeError) -> Void
    ) {
        answer(
            request, reply, worksUnlisted: worksUnlisted, attempt: attempt, succeed: { reply, _ in reply.succeed() })
    }

    /// Refuses a request after something has been waited for, or with EINTR when the request is interrupted before.
    func refuse<Held: Reply & ~Copyable>(
        _ reply: consuming Held, _ error: Errno, after wait: @escaping @Sendable () async -> Void
    ) {
        let parked = ParkedReply(reply) { parked in parked.take()?.fail(.interrupted) }
        Task {
            await wait()
            parked.take()?.fail(error)
        }
    }

    private struct WaitingRequest<Held: Reply & ~Copyable, Answer>: Sendable {
        let caller: Requester
        let parked: ParkedReply<Held>
        let pending: PendingCancellation
        let worksUnlisted: Bool
        let attempt: @Sendable (Attempt) throws(VolumeError) -> Answer
        let undo: @Sendable (Answer) -> Void
        let refuse: @Sendable (consuming Held, Errno) -> Void
        let succeed: @Sendable (consuming Held, Answer) -> Void

        func finish(_ answer: Answer) {
            guard let reply = parked.take() else { return undo(answer) }
            succeed(reply, answer)
        }

        func fail(_ error: Errno) {
            guard let reply = parked.take() else { return }
            refuse(reply, error)
        }
    }

    private func wait<Held: Reply & ~Copyable, Answer>(
        for prerequisite: Prerequisite, _ request: WaitingRequest<Held, Answer>, round: Int
    ) {
        let cancellation = provisioning.provide(prerequisite, for: request.caller) { error in
            // Its process knows that the call was interrupted, and may have done something else since.
            guard !request.pending.isCancelled else { return request.fail(.interrupted) }
            if let error {
                if error == .staleNFSFileHandle, round < Self.maximumRounds {
                    self.follow(request, from: prerequisite, round: round)
                } else if request.worksUnlisted, Self.isAway(error, for: prerequisite) {
                    switch Self.outcome(of: request.attempt, .unlisted) {
                    case .success(let answer): request.finish(answer)
                    // That of what was made here does not depend on the listing.
                    case .failure(.refused(let refusal)) where refusal == .directoryNotEmpty: request.fail(refusal)
                    case .failure: request.fail(error)
                    }
                } else {
                    request.fail(error)
                }
                return
            }
            switch Self.outcome(of: request.attempt, .provided(prerequisite)) {
            case .success(let answer): request.finish(answer)
            case .failure(.refused(let error)): request.fail(error)
            case .failure(.needs(let prerequisite)):
                guard round < Self.maximumRounds else {
                    return request.fail(prerequisite == .room ? .noSpace : .ioError)
                }
                self.wait(for: prerequisite, request, round: round + 1)
            }
        }
        request.pending.hold(cancellation, round: round)
    }

    /// Attempts a request again whose prerequisite the remote does not have any more: an open file that no process has read from follows
    /// the remote to its new version, which may be here by now.
    private func follow<Held: Reply & ~Copyable, Answer>(
        _ request: WaitingRequest<Held, Answer>, from prerequisite: Prerequisite, round: Int
    ) {
        switch Self.outcome(of: request.attempt, .outdated) {
        case .success(let answer): request.finish(answer)
        case .failure(.refused(let error)): request.fail(error)
        case .failure(.needs(let newest)) where newest != prerequisite: wait(for: newest, request, round: round + 1)
        case .failure(.needs): request.fail(.staleNFSFileHandle)
        }
    }

    /// Whether a listing failed because the remote is unreachable.
    private static func isAway(_ error: Errno, for prerequisite: Prerequisite) -> Bool {
        guard case .listing = prerequisite else { return false }
        return error == .noRouteToHost || error == .keyRejected
    }

    private static func outcome<Answer>(
        of attempt: (Attempt) throws(VolumeError) -> Answer, _ state: Attempt
    ) -> Result<Answer, VolumeError> {
        Result { () throws(VolumeError) in try attempt(state) }
    }
}

enum Attempt: Hashable, Sendable {
    case first
    /// This prerequisite was just fulfilled.
    case provided(Prerequisite)
    /// The remote does not have the prerequisite any more.
    case outdated
    /// The required listing cannot be had.
    case unlisted

    var isProvided: Bool { if case .provided = self { true } else { false } }

    /// The process was just permitted to read. Another prerequisite that was fulfilled is no permission.
    var isPermitted: Bool { if case .provided(.permission) = self { true } else { false } }
}

/// The cancellation of a parked request's prerequisite. The request may be interrupted before the cancellation is known.
private final class PendingCancellation: Sendable {
    private struct State {
        var cancellation: (any Cancellation)?
        /// That of the cancellation.
        var round = 0
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// Replaces the cancellation of an earlier round. One round may end, and the next one call this, before the first has.
    func hold(_ cancellation: any Cancellation, round: Int) {
        let isCancelled = state.withLock { state in
            guard round > state.round else { return false }
            (state.cancellation, state.round) = (cancellation, round)
            return state.isCancelled
        }
        if isCancelled { cancellation.cancel() }
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func cancel() {
        let cancellation = state.withLock { state in
            state.isCancelled = true
            return state.cancellation
        }
        cancellation?.cancel()
    }
}
