import FileProvider
import Synchronization
import SystemPackage

/// Files that were made and wait to be written into the database, many in one transaction. Whoever makes a thousand files
/// waits for none of these.
///
/// What is true of them is in the log first, so nothing that was answered is lost with the daemon. Nobody sees a database
/// without them either: a transaction that may change names writes them before it begins (``claim()``), and nothing is added
/// while one runs; whoever reads has them written first, unless what is read has nothing to do with them.
final class NewFiles: Sendable {
    /// A time in which nobody changes a name or a directory, but for the files that are added.
    struct Era: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// The point at which a query of the database begins. The query misses the files that wait at that point, so its result
    /// is valid only while they still wait: after a transaction has written them, their names are neither in the result nor
    /// in memory.
    struct Look: Sendable {
        let era: Era
        fileprivate let writes: UInt64
    }

    /// The right to add one file, if no transaction changes a name until then.
    struct Ticket: Sendable {
        /// Where the check for the file's name begins.
        fileprivate let look: Look
        /// The inode number that is reserved for the file.
        let number: InodeNumber

        var era: Era { look.era }
    }

    private struct Place: Hashable {
        let directory: InodeNumber
        let name: [UInt8]
    }

    private struct State {
        var log: NewFileLog?
        var waiting: [NewFile] = []
        /// Taken by the transaction that is writing them.
        var taken: [NewFile] = []
        /// Where the ones and the others are, and when a directory got the last of them.
        var places: Set<Place> = []
        var touched: [InodeNumber: FileTimestamp] = [:]
        var numbers: Set<InodeNumber> = []

        var reserved: Range<Int64> = 0..<0
        var wantsNumbers = false
        var lastSequence: Int64 = 0
        /// Transactions that may change names: how many run, and how many have begun.
        var claims = 0
        var era = Era()
        /// Whether the last ones could not be written.
        var isStuck = false
        /// Whether somebody will write those that wait.
        var isScheduled = false
        /// What was found out about the directories that got the last files.
        var grounds: [InodeNumber: CreationGround] = [:]
        /// A name that was looked for and is not there.
        var absence: (place: Place, era: Era)?
        var names = KnownNames()
        /// How often some of them have got into the database.
        var writes: UInt64 = 0

        var look: Look { Look(era: era, writes: writes) }

        /// Whether the result of a query that began at that point, and the files that wait, are together all names.
        func isCurrent(_ look: Look) -> Bool { claims == 0 && era == look.era && writes == look.writes }

        func isFree(_ place: Place) -> Bool {
            absence.map { $0.era == era && $0.place == place } ?? false
                || (!places.contains(place) && names.lacks(place.name, in: place.directory, era))
        }

        mutating func note(_ file: NewFile) {
            let item = file.creation.item
            places.insert(Place(directory: item.parent, name: Array(item.name.utf8)))
            touched[item.parent] = item.madeAt
            numbers.insert(file.number)
        }
    }

    private let state = Mutex(State())
    /// Of ``State/waiting`` and ``State/taken``.
    private let count = Atomic<Int>(0)

    static let most = 4096
    private static let mostGrounds = 256
    private static let longestLog: Int64 = 4 << 20
    /// Numbers are reserved so many at a time, and again when there are fewer than a quarter.
    static let reservation: Int64 = 1024

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    // MARK: - Adding

    /// From now on files can be added.
    func begin(_ log: NewFileLog, after sequence: Int64) {
        state.withLock { state in
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
            return Ticket(look: state.look, number: InodeNumber(rawValue: number))
        }
    }

    /// A ticket for the same inode number, for another check of the name: ``add(_:on:_:)`` refused the first one because a
    /// transaction had written files since that was issued.
    ///
    /// - Returns: nil if the file was refused for another reason.
    func renew(_ ticket: Ticket) -> Ticket? {
        state.withLock { state in
            guard state.era == ticket.era, state.claims == 0, !state.isStuck, !state.isCurrent(ticket.look) else {
                return nil
            }
            return Ticket(look: state.look, number: ticket.number)
        }
    }

    /// The ground on which a directory's next file is made, if nothing has changed since it was kept; and whether the name
    /// is known to be free.
    func ground(of directory: InodeNumber, for name: String, _ ticket: Ticket) -> (CreationGround, isFree: Bool)? {
        state.withLock { state in
            guard let ground = state.grounds[directory], ground.era == ticket.era, state.era == ticket.era else {
                return nil
            }
            return (ground, state.isFree(Place(directory: directory, name: Array(name.utf8))))
        }
    }

    /// Makes a file: when this returns it survives the daemon's death.
    ///
    /// - Parameter ground: kept for the directory's next file.
    /// - Returns: nil when it was not made; else whether somebody has to be told to write it.
    func add(_ creation: Creation, on ground: CreationGround, _ ticket: Ticket) -> Bool? {
        state.withLock { state in
            let place = Place(directory: creation.item.parent, name: Array(creation.item.name.utf8))
            guard state.era == ticket.era, state.claims == 0, !state.isStuck, !state.places.contains(place),
                state.isCurrent(ticket.look) || state.isFree(place)
            else { return nil }
            let file = NewFile(sequence: state.lastSequence + 1, number: ticket.number, creation: creation)
            do {
                guard try state.log?.append(file) != nil else { return nil }
            } catch {
                return nil
            }
            state.lastSequence += 1
            state.waiting.append(file)
            state.note(file)
            state.names.insert(place.name, in: place.directory)
            count.wrappingAdd(1, ordering: .releasing)
            state.absence = nil
            var ground = ground
            ground.directory.inode.modifiedAt = creation.item.madeAt
            ground.directory.inode.changedAt = creation.item.madeAt
            if state.grounds.count >= Self.mostGrounds { state.grounds = [:] }
            state.grounds[creation.item.parent] = ground
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    // MARK: - Reading

    /// Whether a name is one of theirs.
    func holds(_ name: String, in directory: InodeNumber) -> Bool {
        !isEmpty && state.withLock { $0.places.contains(Place(directory: directory, name: Array(name.utf8))) }
    }

    /// Whether an inode is one of theirs.
    func holds(_ number: InodeNumber) -> Bool {
        !isEmpty && state.withLock { $0.numbers.contains(number) }
    }

    /// When a directory got the last of those that are in it.
    func lastMade(in directory: InodeNumber) -> FileTimestamp? {
        isEmpty ? nil : state.withLock { $0.touched[directory] }
    }

    /// A directory as it is now, if it is one that got one of the last files.
    func directory(_ number: InodeNumber) -> InodeRecord? {
        state.withLock { state in
            guard let ground = state.grounds[number], ground.era == state.era, state.claims == 0 else { return nil }
            return ground.directory.inode
        }
    }

    /// Begins the query for one name; nil while a transaction may change names.
    func beginLook() -> Look? {
        state.withLock { $0.log == nil || $0.claims > 0 ? nil : $0.look }
    }

    /// The query for a name did not find it in the database.
    func noteAbsence(of name: String, in directory: InodeNumber, _ look: Look) {
        let place = Place(directory: directory, name: Array(name.utf8))
        state.withLock { state in
            // The file may have been added while the query ran.
            guard state.isCurrent(look), !state.places.contains(place) else { return }
            state.absence = (place, look.era)
        }
    }

    /// Whether a directory, of which all is here, is known not to have a name.
    func lacks(_ name: String, in directory: InodeNumber) -> Bool {
        state.withLock { state in
            guard state.claims == 0, state.grounds[directory]?.era == state.era else { return false }
            return state.isFree(Place(directory: directory, name: Array(name.utf8)))
        }
    }

    /// Where files are being made it is worth while to know all names that are there already; nil elsewhere.
    func beginLook(at directory: InodeNumber) -> Look? {
        state.withLock { state in
            guard state.claims == 0, state.grounds[directory]?.era == state.era,
                !state.names.hasLooked(at: directory, in: state.era)
            else { return nil }
            return state.look
        }
    }

    /// - Parameter names: those that the database has, all of them or more than ``KnownNames/most``.
    func endLook(_ look: Look, at directory: InodeNumber, names: [[UInt8]]) {
        state.withLock { state in
            guard state.isCurrent(look) else { return }
            let others = state.places.filter { $0.directory == directory }.map(\.name)
            state.names.keep(names + others, of: directory, look.era)
        }
    }

    // MARK: - Writing them

    /// A transaction that may change names is about to run: nothing is added until ``release()``.
    func claim() {
        state.withLock { state in
            state.claims += 1
            state.era.number &+= 1
        }
    }

    func release() {
        state.withLock { $0.claims -= 1 }
    }

    /// Whoever was told to write them is at it.
    func beginScheduled() {
        state.withLock { $0.isScheduled = false }
    }

    /// Takes all that wait, to be written by a transaction; and whether that is to reserve numbers.
    func take() -> (files: [NewFile], reserves: Bool) {
        state.withLock { state in
            let files = state.waiting
            state.taken += files
            state.waiting = []
            return (files, state.wantsNumbers && state.reserved.count < Self.reservation / 4)
        }
    }

    /// What was taken is in the database, for good.
    func wrote() {
        state.withLock { state in
            state.writes &+= 1
            state.taken = []
            state.places = []
            state.touched = [:]
            state.numbers = []
            for file in state.waiting { state.note(file) }
            count.store(state.waiting.count, ordering: .releasing)
            state.isStuck = false
            guard state.waiting.isEmpty, let size = state.log?.size, size > 1 << 16 else { return }
            // A log that stays as it is does no harm: what is in it is known to be written.
            try? state.log?.clear()
        }
    }

    /// What was taken could not be written: it waits on.
    func putBack() {
        state.withLock { state in
            state.waiting = state.taken + state.waiting
            state.taken = []
            state.isStuck = true
        }
    }

    func reserve(_ numbers: Range<Int64>) {
        state.withLock { state in
            // What was left of the others is never used.
            state.reserved = numbers
        }
    }

    /// Nothing can be added any more.
    func close() {
        state.withLock { state in
            state.log?.close()
            state.log = nil
        }
    }
}
