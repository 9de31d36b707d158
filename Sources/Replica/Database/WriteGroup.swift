import GRDB
import Synchronization

/// Commits writing transactions that wait for their turn as one, so that they share its costs. Each sees what those
/// before it have written, and one that fails undoes nothing of the others.
final class WriteGroup: Sendable {
    /// One that waits.
    private struct Job: Sendable {
        let reach: WriteReach
        /// Does its work inside a transaction that is not its own alone.
        let body: @Sendable (Database, WriteTurn) throws -> Void
        /// Called as soon as what the body has done is rolled back: those that follow compare rows with files.
        let undo: TransactionUndo?
        /// Called once, with the error if it failed.
        let finish: @Sendable ((any Error)?) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isScheduled = false
    }

    private let state = Mutex(State())
    /// A writer outside the group waits no longer for a group than for one transaction.
    private static let longest = Duration.milliseconds(5)
    private static let most = 64

    /// How many wait for their turn.
    var count: Int { state.withLock { $0.waiting.count } }

    /// Runs a body in a writing transaction, without blocking the calling thread.
    ///
    /// The body may be run once more, when the transaction that it was in could not be written.
    ///
    /// - Parameter undo: called if the body fails or is not committed, before the writer is released.
    func write<Value: Sendable>(
        with writer: DatabaseQueue, _ newFiles: NewFiles, after changes: UncommittedChanges, _ reach: WriteReach,
        undoing undo: TransactionUndo?, _ body: @escaping @Sendable (Database, WriteTurn) throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        let value = Mutex<Value?>(nil)
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            add(
                Job(
                    reach: reach,
                    body: { db, turn in
                        let result = try body(db, turn)
                        value.withLock { $0 = result }
                    }, undo: undo,
                    finish: { error in
                        if error != nil { undo?.run() }
                        continuation.resume(with: error.map(Result.failure) ?? .success(()))
                    }),
                writer, newFiles, changes)
        }
        guard let value = value.withLock({ $0 }) else { throw ReplicaDefect("a transaction has no result") }
        return value
    }

    private func add(_ job: Job, _ writer: DatabaseQueue, _ newFiles: NewFiles, _ changes: UncommittedChanges) {
        let isFirst = state.withLock { state in
            state.waiting.append(job)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { schedule(writer, newFiles, changes) }
    }

    private func schedule(_ writer: DatabaseQueue, _ newFiles: NewFiles, _ changes: UncommittedChanges) {
        writer.asyncWriteWithoutTransaction { db in
            let jobs = self.take()
            do {
                try changes.commit(in: db)
                self.run(jobs, in: db, newFiles)
            } catch {
                for job in jobs { job.finish(error) }
            }
            let isMore = self.state.withLock { state in
                state.isScheduled = !state.waiting.isEmpty
                return state.isScheduled
            }
            // Behind those who came to write meanwhile.
            if isMore { self.schedule(writer, newFiles, changes) }
        }
    }

    /// The next ones that go together.
    private func take() -> [Job] {
        state.withLock { state in
            guard let reach = state.waiting.first?.reach else { return [] }
            let jobs = Array(state.waiting.prefix(Self.most).prefix { $0.reach == reach })
            state.waiting.removeFirst(jobs.count)
            return jobs
        }
    }

    private func putBack(_ jobs: ArraySlice<Job>) {
        if !jobs.isEmpty { state.withLock { $0.waiting.insert(contentsOf: jobs, at: 0) } }
    }

    private func run(_ jobs: [Job], in db: Database, _ newFiles: NewFiles) {
        guard let first = jobs.first, jobs.count > 1 else {
            for job in jobs { run(job, in: db, newFiles) }
            return
        }
        let start = ContinuousClock.now
        do {
            let failures = try WriteTurn.run(first.reach, of: newFiles, in: db) { db, turn in
                var failures: [(any Error)?] = []
                for job in jobs where failures.isEmpty || ContinuousClock.now - start < Self.longest {
                    switch try db.attempt({ db in try job.body(db, turn) }) {
                    case .success: failures.append(nil)
                    case .failure(let error):
                        // New files that it wrote were rolled back with it.
                        if turn.hasWrittenWithin { throw error }
                        job.undo?.run()
                        failures.append(error)
                    }
                }
                return failures
            }
            putBack(jobs[failures.count...])
            for (job, failure) in zip(jobs, failures) { job.finish(failure) }
        } catch {
            // In their order: what the first has withdrawn was there before.
            for job in jobs { job.undo?.run() }
            // Each by itself, with what is wrong with it alone.
            for job in jobs { run(job, in: db, newFiles) }
        }
    }

    private func run(_ job: Job, in db: Database, _ newFiles: NewFiles) {
        do {
            try WriteTurn.run(job.reach, of: newFiles, in: db, job.body)
            job.finish(nil)
        } catch {
            job.finish(error)
        }
    }
}
