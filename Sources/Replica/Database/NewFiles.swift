import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Files that were made and are not in the database yet: a transaction writes many of them together, and the process that
/// creates a thousand files waits for none of these transactions.
///
/// This is a second copy of the truth, and the only access to it. Its invariants:
///
/// 1. A file is in the log before it is in memory, and it stays in the log until a transaction with it has been committed:
///    no acknowledged creation is lost when the daemon is killed.
/// 2. Every file is in `waiting`, or in `taken` while a transaction writes it. `places`, `numbers`, `touched` and `count`
///    describe exactly these files, in the order of their sequences.
/// 3. No transaction sees the database without them: one that may change names writes them before it begins
///    (``claim()``), and nothing is added while one runs; a reader has them written first, unless what it reads has nothing
///    to do with them.
/// 4. What is remembered about the database (rules, absent and known names) is used only in the ``NameEra`` in which it
///    was read, and a name that waits is never remembered as absent.
///
/// ``violations()`` checks 2 and 4: in debug builds after each transaction, and in the tests after each step.
final class NewFiles: Sendable {
    /// The point at which a query of the database begins. The query misses the files that wait at that point, so its result
    /// is valid only while they still wait: after a transaction has written them, their names are neither in the result nor
    /// in memory.
    struct QueryPoint: Sendable {
        let era: NameEra
        let writes: UInt64
    }

    /// The right to add one file, if no transaction changes a name until then.
    struct Ticket: Sendable {
        /// Where the check for the file's name begins.
        fileprivate let point: QueryPoint
        let number: InodeNumber

        var era: NameEra { point.era }
    }

    private let state = Mutex(State())
    /// Of ``State/waiting`` and ``State/taken``.
    private let count = Atomic<Int>(0)

    static let most = 4096
    private static let mostRules = 256
    private static let longestLog: Int64 = 4 << 20
    /// A longer log is cleared when all of its files are written. What is kept then is a quarter of it.
    private static let usualLog: Int64 = 512 << 10
    /// Numbers are reserved so many at a time, and again when there are fewer than a quarter.
    static let reservation: Int64 = 1024

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    // MARK: - Adding

    /// From now on files can be added.
    ///
    /// - Parameter files: those in the log, all of which are in the database.
    func begin(_ log: NewFileLog, with files: [NewFile] = [], after sequence: Int64) {
        state.withLock { state in
            state.noteAnswered(files.filter { $0.request != nil })
            state.log = log
            state.lastSequence = sequence
        }
    }

    /// Nil where a file has to be made in a transaction of its own.
    func ticket() -> Ticket? {
        state.withLock { state in
            guard let log = state.log, log.size < Self.longestLog, state.claims == 0, !state.isStuck,
                state.waiting.count < Self.most
            else { return nil }
            guard let number = state.reserved.popFirst() else {
                state.wantsNumbers = true
                return nil
            }
            return Ticket(point: state.point, number: InodeNumber(rawValue: number))
        }
    }

    /// A ticket for the same inode number, for another check of the name: ``add(_:on:_:)`` refused the first one because a
    /// transaction had written files since that was issued.
    ///
    /// - Returns: nil if the file was refused for another reason.
    func renew(_ ticket: Ticket) -> Ticket? {
        state.withLock { state in
            guard state.era == ticket.era, state.claims == 0, !state.isStuck, !state.isCurrent(ticket.point) else {
                return nil
            }
            return Ticket(point: state.point, number: ticket.number)
        }
    }

    /// The rules by which a directory's next file is made, if nothing has changed since it was kept; and whether the name
    /// is known to be free.
    func rules(of directory: InodeNumber, for name: String, _ ticket: Ticket) -> (CreationRules, isFree: Bool)? {
        state.withLock { state in
            guard let rules = state.rules[directory], rules.era == ticket.era, state.era == ticket.era else {
                return nil
            }
            return (rules, state.isFree(Place(directory: directory, name: Array(name.utf8))))
        }
    }

    /// Makes a file: when this returns it survives the daemon's death.
    ///
    /// - Parameters:
    ///   - rules: kept for the directory's next file.
    ///   - request: the kernel's request that makes it, which is recorded with it.
    /// - Returns: nil when it was not made; else whether the caller has to schedule the task that writes it.
    func add(
        _ creation: Creation, by rules: CreationRules, _ ticket: Ticket, for request: RequestNumber? = nil
    ) -> Bool? {
        state.withLock { state in
            let place = Place(directory: creation.item.parent, name: Array(creation.item.name.utf8))
            guard state.era == ticket.era, state.claims == 0, !state.isStuck, !state.places.contains(place),
                state.isCurrent(ticket.point) || state.isFree(place)
            else { return nil }
            let file = NewFile(
                sequence: state.lastSequence + 1, number: ticket.number, creation: creation, request: request)
            do {
                guard try state.log?.append(file) != nil else { return nil }
            } catch {
                return nil
            }
            state.lastSequence += 1
            state.waiting.append(file)
            if request != nil { state.noteAnswered([file]) }
            state.note(file)
            state.names.insert(place.name, in: place.directory)
            count.wrappingAdd(1, ordering: .releasing)
            state.absence = nil
            var rules = rules
            rules.directory.inode.modifiedAt = creation.item.madeAt
            rules.directory.inode.changedAt = creation.item.madeAt
            if state.rules.count >= Self.mostRules { state.rules = [:] }
            state.rules[creation.item.parent] = rules
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// Changes the attributes of a file that waits: when this returns the change survives the daemon's death.
    ///
    /// - Parameters:
    ///   - request: the kernel's request that changes them, which is recorded with the file.
    ///   - body: returns false to change nothing.
    /// - Returns: nil where they have to be changed in a transaction.
    func change(
        _ number: InodeNumber, for request: RequestNumber?, _ body: (inout Creation) -> Bool
    ) -> InodeRecord? {
        guard !isEmpty else { return nil }
        return state.withLock { state in
            guard !state.isStuck, let size = state.log?.size, size < Self.longestLog,
                let index = state.index(of: number, in: state.waiting)
            else { return nil }
            var file = state.waiting[index]
            file.request = request
            guard body(&file.creation), (try? state.log?.append(file)) != nil else { return nil }
            state.waiting[index] = file
            if request != nil { state.noteAnswered([file]) }
            return file.creation.inode(number)
        }
    }

    // MARK: - Reading

    /// A file as it is before the database has it.
    func inode(_ number: InodeNumber) -> InodeRecord? {
        guard !isEmpty else { return nil }
        return state.withLock { state -> InodeRecord? in
            if let index = state.index(of: number, in: state.waiting) {
                return state.waiting[index].creation.inode(number)
            }
            return state.index(of: number, in: state.taken).map { state.taken[$0].creation.inode(number) }
        }
    }

    /// Whether a name is one of theirs.
    func holds(_ name: String, in directory: InodeNumber) -> Bool {
        !isEmpty && state.withLock { $0.places.contains(Place(directory: directory, name: Array(name.utf8))) }
    }

    /// When a directory got the last of those that are in it.
    func lastMade(in directory: InodeNumber) -> FileTimestamp? {
        isEmpty ? nil : state.withLock { $0.touched[directory] }
    }

    /// A directory as it is now, if it is one that got one of the last files.
    func directory(_ number: InodeNumber) -> InodeRecord? {
        state.withLock { state in
            guard let rules = state.rules[number], rules.era == state.era, state.claims == 0 else { return nil }
            return rules.directory.inode
        }
    }

    /// Begins the query for one name; nil while a transaction may change names.
    func beginQuery() -> QueryPoint? {
        state.withLock { $0.log == nil || $0.claims > 0 ? nil : $0.point }
    }

    /// The query for a name did not find it in the database.
    func noteAbsence(of name: String, in directory: InodeNumber, _ point: QueryPoint) {
        let place = Place(directory: directory, name: Array(name.utf8))
        state.withLock { state in
            // The file may have been added while the query ran.
            guard state.isCurrent(point), !state.places.contains(place) else { return }
            state.absence = (place, point.era)
        }
    }

    /// Whether a directory, of which all is here, is known not to have a name.
    func lacks(_ name: String, in directory: InodeNumber) -> Bool {
        state.withLock { state in
            guard state.claims == 0, state.rules[directory]?.era == state.era else { return false }
            return state.isFree(Place(directory: directory, name: Array(name.utf8)))
        }
    }

    /// Where files are being made it is worth while to know all names that are there already; nil elsewhere.
    func beginQuery(at directory: InodeNumber) -> QueryPoint? {
        state.withLock { state in
            guard state.claims == 0, state.rules[directory]?.era == state.era,
                !state.names.hasLooked(at: directory, in: state.era)
            else { return nil }
            return state.point
        }
    }

    /// - Parameter names: those that the database has, all of them or more than ``KnownNames/most``.
    func endQuery(_ point: QueryPoint, at directory: InodeNumber, names: [[UInt8]]) {
        state.withLock { state in
            guard state.isCurrent(point) else { return }
            let others = state.places.filter { $0.directory == directory }.map(\.name)
            state.names.keep(names + others, of: directory, point.era)
        }
    }

    // MARK: - Writing them

    /// A transaction that may change names is about to run: nothing is added until ``release()``.
    func claim() {
        state.withLock { state in
            state.claims += 1
            state.era.end()
        }
    }

    func release() {
        state.withLock { $0.claims -= 1 }
    }

    /// The scheduled task has begun.
    func beginScheduled() {
        state.withLock { $0.isScheduled = false }
    }

    /// Takes all that wait, for a transaction that writes them.
    ///
    /// - Returns: the files, and whether the transaction has to reserve inode numbers.
    func take() -> (files: [NewFile], reserves: Bool) {
        state.withLock { state in
            let files = state.waiting
            state.taken += files
            state.waiting = []
            return (files, state.wantsNumbers && state.reserved.count < Self.reservation / 4)
        }
    }

    /// The files that were taken are committed.
    func wrote() {
        state.withLock { state in
            defer { check(state) }
            state.writes &+= 1
            state.taken = []
            state.places = []
            state.touched = [:]
            state.numbers = [:]
            for file in state.waiting { state.note(file) }
            count.store(state.waiting.count, ordering: .releasing)
            state.isStuck = false
            guard state.waiting.isEmpty, let size = state.log?.size, size > Self.usualLog else { return }
            // A log that stays as it is does no harm: what is in it is known to be written.
            try? state.log?.clear(keeping: state.answered)
        }
    }

    /// Forgets the requests that have made files. Precondition: all files were written, and none are made meanwhile.
    func forgetAnswers() throws(Errno) {
        try state.withLock { (state: inout State) throws(Errno) in
            state.answered = []
            guard state.waiting.isEmpty, state.taken.isEmpty else { return }
            try state.log?.clear()
        }
    }

    /// The files that were taken could not be written: they wait again.
    func putBack() {
        state.withLock { state in
            state.waiting = state.taken + state.waiting
            state.taken = []
            state.isStuck = true
            check(state)
        }
    }

    func reserve(_ numbers: Range<Int64>) {
        state.withLock { state in
            // The rest of the earlier range is never used.
            state.reserved = numbers
        }
    }

    /// The violations of the invariants; none in a correct program.
    func violations() -> [String] {
        state.withLock { $0.violations(count: count.load(ordering: .acquiring)) }
    }

    private func check(_ state: State) {
        assert(state.violations(count: count.load(ordering: .acquiring)).isEmpty)
    }

    /// Closes the log; nothing can be added afterwards.
    func close() {
        state.withLock { state in
            state.log?.close()
            state.log = nil
        }
    }
}

/// The facts that decide about every new file of a directory.
struct CreationRules: Sendable {
    var directory: DirectoryRecord
    var capabilities: ItemCapabilities
    /// In which it was found out, and for which it is good.
    var era: NameEra
}
