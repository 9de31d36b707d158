import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization
import SystemPackage

/// One directory's listing while it arrives: a task reads the answer as fast as the server gives it, so that no connection
/// waits for whoever takes the entries, and those that are taken later lie in an ``EntrySpool``.
final class ListingStream: Sendable {
    private struct State {
        var spool: EntrySpool
        /// Whether the server has said that the directory is one; nil before it has said anything of it.
        var isDirectory: Bool?
        var leavesOut = false
        var result: Result<Void, any Error>?
        var waiter: CheckedContinuation<Void, Never>?
        /// How many entries are waited for.
        var wanted = 0
        var task: Task<Void, Never>?

        /// Whether who waits can go on.
        var isReady: Bool { result != nil || isDirectory == false || isDirectory == true && spool.count >= wanted }

        /// Whether all has arrived.
        var isWhole: Bool { if case .success = result { true } else { false } }

        /// Who waits, when that is over.
        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            guard isReady else { return nil }
            defer { waiter = nil }
            return waiter
        }
    }

    /// What is there of a listing.
    struct Part {
        var entries: [RemoteEntry]
        var leavesOut: Bool
        var isLast: Bool
    }

    private let state: Mutex<State>
    /// What has arrived is given after so long, however little it is.
    private static let patience = Duration.milliseconds(100)

    /// - Parameter directory: where the spool's file is made.
    init(in directory: FilePath) {
        state = Mutex(State(spool: EntrySpool(in: directory)))
    }

    // MARK: - Arriving

    /// Reads an answer.
    func start(_ body: @escaping @Sendable () async throws -> Void) {
        let task = Task {
            let result: Result<Void, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            wake { $0.result = result }
        }
        state.withLock { $0.task = task }
    }

    func add(_ entry: RemoteEntry) throws {
        let waiter = try state.withLock { state in
            try state.spool.append(entry)
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    /// The server says what the directory itself is.
    func noteOwn(isDirectory: Bool) { wake { $0.isDirectory = $0.isDirectory ?? isDirectory } }

    /// Something in the directory cannot be shown.
    func noteLeftOut() { state.withLock { $0.leavesOut = true } }

    private func wake(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    // MARK: - Taking

    /// The next entries: so many, or what has arrived by now.
    ///
    /// - Parameters:
    ///   - limit: `Int.max` waits for all.
    ///   - what: the directory, for messages.
    /// - Throws: what the request throws; `noSuchItem` for what is no directory; `malformedResponse` for an answer that does
    ///   not say what it is.
    func next(_ limit: Int, of what: String, on host: String) async throws -> Part {
        while true {
            try Task.checkCancellation()
            let (isOver, isDirectory, failure, count) = state.withLock { state in
                state.wanted = limit
                let failure: (any Error)? = if case .failure(let error) = state.result { error } else { nil }
                return (state.result != nil, state.isDirectory, failure, state.spool.count)
            }
            if let failure { throw failure }
            if isDirectory == false { throw FileProviderError(.noSuchItem, "\(host) has no directory '\(what)'") }
            // Without the directory itself it is no answer to the question: an empty one would look as if all had gone.
            if isOver, isDirectory == nil {
                throw FileProviderError(.malformedResponse, "\(host) does not say what '\(what)' is")
            }
            if isOver || isDirectory == true && count >= limit { return try await take(limit) }
            let hasCome = await wait()
            if !hasCome, limit < .max, isDirectory == true, count > 0 { return try await take(limit) }
        }
    }

    private func take(_ limit: Int) async throws -> Part {
        try await BlockingWork.run { [self] in
            try state.withLock { state in
                let entries = try state.spool.take(limit)
                let isLast = state.spool.count == 0 && state.isWhole
                return Part(entries: entries, leavesOut: state.leavesOut, isLast: isLast)
            }
        }
    }

    /// - Returns: false when it has waited for as long as it may.
    private func wait() async -> Bool {
        let isLate = Mutex(false)
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            isLate.withLock { $0 = true }
            resume()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if state.isReady || Task.isCancelled || isLate.withLock({ $0 }) { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            resume()
        }
        timer.cancel()
        return !isLate.withLock { $0 }
    }

    private func resume() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Nobody wants the rest.
    func cancel() {
        let task = state.withLock { state in
            state.spool.close()
            return state.task
        }
        task?.cancel()
        resume()
    }

    deinit { state.withLock { $0.spool.close() } }
}

/// The listings of which parts have been given.
final class OpenListings: Sendable {
    private struct Listing {
        var stream: ListingStream
        var part = 0
        var usedAt: ContinuousClock.Instant
    }

    private let listings = Mutex((last: 0, all: [Int: Listing]()))
    /// Whoever does not come back for so long does not come at all.
    private static let patience = Duration.seconds(300)

    /// - Returns: the token of the part that comes next.
    func keep(_ stream: ListingStream) -> [UInt8] {
        let now = ContinuousClock.now
        let (token, old) = listings.withLock { listings in
            let old = listings.all.filter { now - $0.value.usedAt > Self.patience }
            for number in old.keys { listings.all[number] = nil }
            listings.last += 1
            listings.all[listings.last] = Listing(stream: stream, usedAt: now)
            return (Self.token(listings.last, 0), old.values.map(\.stream))
        }
        for stream in old { stream.cancel() }
        return token
    }

    /// The listing that goes on with a token; nil when that is no more known.
    func stream(_ token: [UInt8]) -> ListingStream? {
        listings.withLock { listings in
            guard let (number, part) = Self.parts(of: token), listings.all[number]?.part == part else { return nil }
            listings.all[number]?.usedAt = .now
            return listings.all[number]?.stream
        }
    }

    /// - Returns: the token of the part after the one that a token stands for.
    func advance(_ token: [UInt8]) -> [UInt8]? {
        listings.withLock { listings in
            guard let (number, part) = Self.parts(of: token), listings.all[number] != nil else { return nil }
            listings.all[number]?.part = part + 1
            return Self.token(number, part + 1)
        }
    }

    func end(_ token: [UInt8]) {
        let stream = listings.withLock { listings in
            Self.parts(of: token).flatMap { listings.all.removeValue(forKey: $0.number)?.stream }
        }
        stream?.cancel()
    }

    func endAll() {
        let all = listings.withLock { listings in
            defer { listings.all = [:] }
            return listings.all.values.map(\.stream)
        }
        for stream in all { stream.cancel() }
    }

    private static func token(_ number: Int, _ part: Int) -> [UInt8] { Array("\(number).\(part)".utf8) }

    private static func parts(of token: [UInt8]) -> (number: Int, part: Int)? {
        let parts = String(decoding: token, as: UTF8.self).split(separator: ".").compactMap { Int($0) }
        return parts.count == 2 ? (parts[0], parts[1]) : nil
    }
}
