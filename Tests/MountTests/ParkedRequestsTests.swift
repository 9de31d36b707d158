import Replica
import Synchronization
import SystemPackage
import Testing
import Volume

@testable import FUSE
@testable import Mount

/// Requests that wait, without a kernel.
@Suite struct ParkedRequestsTests {
    /// The errors and answers that the kernel gets, and the handler of the interruption.
    private final class Kernel: Sendable {
        private struct State {
            var answers: [Int] = []
            var errors: [Errno] = []
            var handler: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())

        var answers: [Int] { state.withLock { $0.answers } }
        var errors: [Errno] { state.withLock { $0.errors } }

        func take(_ answer: Int) { state.withLock { $0.answers.append(answer) } }
        func take(_ error: Errno) { state.withLock { $0.errors.append(error) } }
        func watch(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }
        func interrupt() { state.withLock { $0.handler }?() }
    }

    private struct Answering: ~Copyable, Reply {
        let kernel: Kernel

        consuming func succeed(_ answer: Int) { kernel.take(answer) }
        consuming func fail(_ error: Errno) { kernel.take(error) }
        mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { kernel.watch(handler) }
    }

    /// Fulfils a prerequisite when the test says so, also after the cancellation.
    private final class Provider: Provisioning {
        private struct Nothing: Cancellation {
            func cancel() {}
        }

        private let completion = Mutex<(@Sendable (Errno?) -> Void)?>(nil)

        func provide(
            _ prerequisite: Prerequisite, for caller: Requester, completion: @escaping @Sendable (Errno?) -> Void
        ) -> any Cancellation {
            self.completion.withLock { $0 = completion }
            return Nothing()
        }

        func end(_ error: Errno? = nil) { completion.withLock { $0 }?(error) }
    }

    private let kernel = Kernel()
    private let provider = Provider()

    /// A request whose first attempt needs something and whose second has an answer, and what was undone of it.
    ///
    /// - Parameter during: runs during each attempt.
    private func run(during: @escaping @Sendable (Attempt) -> Void = { _ in }) -> [Int] {
        let undone = Undone()
        let request = Request(caller: Caller(processID: 1, userID: 2, groupID: 3), unique: 1, number: nil)
        ParkedRequests(provisioning: provider).answer(request, Answering(kernel: kernel)) {
            attempt throws(VolumeError) -> Int in
            during(attempt)
            if attempt == .first { throw .needs(.room) }
            return 7
        } undo: { answer in
            undone.add(answer)
        } succeed: { reply, answer in
            reply.succeed(answer)
        }
        provider.end()
        return undone.answers
    }

    private final class Undone: Sendable {
        private let state = Mutex<[Int]>([])

        var answers: [Int] { state.withLock { $0 } }

        func add(_ answer: Int) { state.withLock { $0.append(answer) } }
    }

    @Test("a request is answered when its prerequisite is fulfilled") func answers() {
        #expect(run() == [])
        #expect(kernel.answers == [7])
        #expect(kernel.errors == [])
    }

    @Test("ERROR-2: what an attempt has opened is closed again when its caller was killed meanwhile")
    func interrupted() {
        let undone = run { [kernel] attempt in
            if attempt != .first { kernel.interrupt() }
        }
        #expect(undone == [7])
        #expect(kernel.answers == [])
        #expect(kernel.errors == [.interrupted])
    }

    @Test("ERROR-2: a request that was interrupted is not carried out when its prerequisite is fulfilled after that")
    func fulfilledTooLate() {
        let attempts = Undone()
        let request = Request(caller: Caller(processID: 1, userID: 2, groupID: 3), unique: 1, number: nil)
        ParkedRequests(provisioning: provider).answer(request, Answering(kernel: kernel)) {
            attempt throws(VolumeError) -> Int in
            attempts.add(attempt == .first ? 1 : 2)
            if attempt == .first { throw .needs(.room) }
            return 7
        } succeed: { reply, answer in
            reply.succeed(answer)
        }
        kernel.interrupt()
        provider.end()
        #expect(attempts.answers == [1])
        #expect(kernel.answers == [])
        #expect(kernel.errors == [.interrupted])
    }

    @Test("LIMIT-1: a process that has waited for something else is not permitted to read by that") func permission() {
        let seen = Undone()
        let request = Request(caller: Caller(processID: 1, userID: 2, groupID: 3), unique: 1, number: nil)
        let file = InodeNumber(rawValue: 2)
        ParkedRequests(provisioning: provider).answer(request, Answering(kernel: kernel)) {
            attempt throws(VolumeError) -> Int in
            seen.add(attempt.isPermitted ? 1 : 0)
            if attempt == .first { throw .needs(.claim(of: file)) }
            if !attempt.isPermitted { throw .needs(.permission(toRead: file)) }
            return 7
        } succeed: { reply, answer in
            reply.succeed(answer)
        }
        provider.end()
        provider.end()
        #expect(seen.answers == [0, 0, 1])
        #expect(kernel.answers == [7])
    }

    /// Fulfils the first prerequisite before it returns, and no other.
    private final class HastyProvider: Provisioning {
        private struct Round: Cancellation {
            let number: Int
            let provider: HastyProvider

            func cancel() { provider.state.withLock { $0.cancelled.append(number) } }
        }

        private struct State {
            /// Kept, because they have the parked request.
            var completions: [@Sendable (Errno?) -> Void] = []
            var cancelled: [Int] = []
        }

        private let state = Mutex(State())

        var cancelled: [Int] { state.withLock { $0.cancelled } }

        func provide(
            _ prerequisite: Prerequisite, for caller: Requester, completion: @escaping @Sendable (Errno?) -> Void
        ) -> any Cancellation {
            let number = state.withLock { state in
                state.completions.append(completion)
                return state.completions.count
            }
            if number == 1 { completion(nil) }
            return Round(number: number, provider: self)
        }
    }

    @Test("ERROR-2: an interruption cancels the newest prerequisite, also when the one before it came at once")
    func interruptedInTheSecondRound() {
        let provider = HastyProvider()
        let request = Request(caller: Caller(processID: 1, userID: 2, groupID: 3), unique: 1, number: nil)
        ParkedRequests(provisioning: provider).answer(request, Answering(kernel: kernel)) {
            _ throws(VolumeError) -> Int in
            throw .needs(.room)
        } succeed: { reply, answer in
            reply.succeed(answer)
        }
        #expect(kernel.errors == [])
        kernel.interrupt()
        #expect(provider.cancelled == [2])
        #expect(kernel.errors == [.interrupted])
    }

    @Test(
        "WRITE-14: without the listing, what was made there is refused for what is in it, and nothing for what is unknown",
        arguments: [
            (Errno.directoryNotEmpty, Errno.directoryNotEmpty), (Errno.noSuchFileOrDirectory, Errno.noRouteToHost),
        ])
    func refusedUnlisted(refusal: Errno, answer: Errno) {
        let request = Request(caller: Caller(processID: 1, userID: 2, groupID: 3), unique: 1, number: nil)
        let directory = InodeNumber(rawValue: 2)
        ParkedRequests(provisioning: provider).answer(request, Answering(kernel: kernel), worksUnlisted: true) {
            attempt throws(VolumeError) -> Int in
            if attempt == .unlisted { throw .refused(refusal) }
            throw .needs(.listing(of: directory, beyond: nil))
        } succeed: { reply, answer in
            reply.succeed(answer)
        }
        #expect(kernel.errors == [])
        provider.end(.noRouteToHost)
        #expect(kernel.errors == [answer])
    }

    @Test(
        "OPEN-7: an append that is refused later is refused once, also when it is interrupted", .timeLimit(.minutes(1)),
        arguments: [false, true])
    func refusedLater(interrupted: Bool) async {
        let (sent, sending) = AsyncStream.makeStream(of: Void.self)
        ParkedRequests(provisioning: provider).refuse(Answering(kernel: kernel), .staleNFSFileHandle) {
            for await _ in sent {}
        }
        #expect(kernel.errors == [])
        if interrupted { kernel.interrupt() }
        sending.finish()
        while kernel.errors.isEmpty { await Task.yield() }
        #expect(kernel.errors == [interrupted ? .interrupted : .staleNFSFileHandle])
    }
}
