import Syscalls
import SystemPackage

/// Why inherited memory cannot serve as a ``HandleTable``. The mount must then be aborted and mounted again.
package enum HandleTableError: Error, Hashable, CustomStringConvertible {
    case foreign
    case otherVersion(UInt64)
    case corrupt(String)
    case unavailable(Errno)

    package var description: String {
        switch self {
        case .foreign: "the inherited memory is not a table of open files"
        case .otherVersion(let version):
            "the table of open files has layout \(version), and this program reads layout \(HandleTable.Layout.version)"
        case .corrupt(let reason): "the table of open files is corrupt: \(reason)"
        case .unavailable(let error): "the table of open files cannot be mapped: \(error)"
        }
    }
}

/// The handles and lookups of a mount that the kernel counts on, in memory that outlives the process.
///
/// Every change is stored in a redo record of absolute values first, then marked valid, applied, and marked done. A
/// process that is killed at any instruction leaves the state before or after the change; ``adopt(_:)`` applies a
/// valid record again. A region grows by a copy elsewhere, to which one such change switches.
///
/// The table is not safe for concurrent use.
package struct HandleTable: ~Copyable {
    var memory: SharedMemory
    /// The number of words in the redo record that is being written.
    private var staged = 0
    var ringCapacity: Int { Int(truncatingIfNeeded: memory[Layout.ringCapacityWord]) }

    /// An open inode.
    struct Entry: Hashable {
        var count: UInt32 = 0
        var writers: UInt32 = 0
        /// The number of writers that have closed the file while their changes are not recorded yet.
        var closing: UInt32 = 0
        var content = OpenContent()
    }

    /// What has to be remembered of the content that the handles of an inode use.
    struct OpenContent: Hashable {
        var isDecided = false
        var isComplete = false
        var isWritten = false
        var isUsed = false
        var backing: Int32?
    }

    /// A request that changed a count.
    struct CountedRequest: Hashable {
        fileprivate var word: UInt64

        /// The kernel does not use bit 63 in its numbers, so that the kind of the count has a bit here. CREATE counts both.
        static func handle(_ number: UInt64) -> Self { Self(word: number << 1 | 1) }
        static func lookup(_ number: UInt64) -> Self { Self(word: number << 1) }
    }

    enum Layout {
        static let magic: UInt64 = 0x4E64_6C48_5265_6459
        static let version: UInt64 = 2
        static let page = 4096
        static let magicWord = 0
        static let versionWord = 8
        static let ringCapacityWord = 16
        /// The number of counted requests so far: the ring's position.
        static let ringCountWord = 24
        /// The place and the length of the description.
        static let descriptionWord = 32
        static let handles = Region(header: 40, valueSize: 24, minimumCapacity: 128)
        static let lookups = Region(header: 72, valueSize: 64, minimumCapacity: 512)
        static let manyLookups = Region(header: 104, valueSize: 8, minimumCapacity: 256)
        static let regions = [handles, lookups, manyLookups]
        /// The number of nodes that the kernel knows.
        static let knownWord = 136
        /// The number of words in the redo record; 0 if it has been applied. The offsets and values follow.
        static let redoWord = 144
        static let redoCapacity = 32
        static let descriptions = page
        static let descriptionCapacity = 4096
        static let ring = descriptions + 2 * descriptionCapacity

        static func end(ringCapacity: Int) -> Int { (ring + ringCapacity * 16 + page - 1) / page * page }
    }

    /// The layout of the tables that this program makes.
    package static var layout: UInt64 { Layout.version }

    /// - Throws: `otherVersion` if this program cannot read tables of a layout.
    package static func check(layout: UInt64) throws(HandleTableError) {
        guard layout == Layout.version else { throw .otherVersion(layout) }
    }

    /// An empty table.
    ///
    /// - Parameter ringCapacity: the number of counted requests that are remembered: more than can be unanswered.
    package init(ringCapacity: Int = 4096) throws(Errno) {
        var offset = Layout.end(ringCapacity: ringCapacity)
        let count = Layout.regions.reduce(offset) { $0 + $1.size($1.minimumCapacity) }
        memory = try SharedMemory(named: "yonder-handles", count: count)
        memory[Layout.versionWord] = Layout.version
        memory[Layout.ringCapacityWord] = UInt64(ringCapacity)
        for region in Layout.regions {
            memory[region.offset] = UInt64(offset)
            memory[region.capacity] = UInt64(region.minimumCapacity)
            offset += region.size(region.minimumCapacity)
        }
        // Last: memory without it is refused.
        memory[Layout.magicWord] = Layout.magic
    }

    private init(memory: consuming SharedMemory) { self.memory = memory }

    /// The table in inherited memory, in the state before or after the change that its last owner was making.
    ///
    /// - Throws: if the memory is no table of this layout. The descriptor is then closed.
    package static func adopt(_ descriptor: FileDescriptor) throws(HandleTableError) -> HandleTable {
        var table = HandleTable(memory: try map(descriptor))
        try table.checkHeader()
        let redo = Int(table.memory[Layout.redoWord])
        for word in 0..<redo {
            let offset = table.memory[Layout.redoWord + 8 + word * 16]
            guard offset & 7 == 0, offset >= Layout.ringCountWord, offset <= table.memory.count - 8,
                offset < Layout.redoWord || offset >= Layout.descriptions
            else { throw .corrupt("the redo record writes at \(offset)") }
        }
        table.apply(redo)
        try table.checkContents()
        return table
    }

    private static func map(_ descriptor: FileDescriptor) throws(HandleTableError) -> SharedMemory {
        do throws(Errno) {
            return try SharedMemory(adopting: descriptor)
        } catch {
            throw .unavailable(error)
        }
    }

    /// The descriptor of the memory, for the process that keeps it.
    package var descriptor: FileDescriptor { memory.descriptor }

    /// What the owner says about the mount: at most 4096 bytes.
    package var description: [UInt8] {
        get {
            let (place, length) = descriptionPlace
            return memory.bytes(in: place..<place + length)
        }
        set {
            precondition(newValue.count <= Layout.descriptionCapacity, "the description is too long")
            // Written beside the old one, to which the word points until then.
            let next: UInt64 = memory[Layout.descriptionWord] >> 32 ^ 1
            memory.store(newValue, at: Layout.descriptions + Int(next) * Layout.descriptionCapacity)
            memory[Layout.descriptionWord] = next << 32 | UInt64(newValue.count)
        }
    }

    private var descriptionPlace: (offset: Int, count: Int) {
        let word = memory[Layout.descriptionWord]
        return (Layout.descriptions + Int(word >> 32) * Layout.descriptionCapacity, Int(word & 0xFFFF_FFFF))
    }

    // MARK: - Open inodes

    /// The state of an inode; nil if it is not open.
    func entry(of number: UInt64) -> Entry? {
        find(number, in: Layout.handles).map { entry(at: $0) }
    }

    var openNumbers: [UInt64] { keys(of: Layout.handles) }

    /// Changes an inode's entry, and remembers or forgets in the same step that a request was counted.
    ///
    /// - Parameter entry: nil or without handles if the inode is not open any more.
    mutating func set(
        _ entry: Entry?, of number: UInt64, counting counted: CountedRequest? = nil,
        uncounting uncounted: CountedRequest? = nil
    ) {
        if let entry, entry.count > 0 {
            let slot = slot(for: number, in: Layout.handles)
            let place = valuePlace(slot, in: Layout.handles)
            stage(UInt64(entry.count) | UInt64(entry.writers) << 32, at: place)
            stage(
                UInt64(entry.closing) | UInt64(UInt32(bitPattern: entry.content.backing ?? 0)) << 32, at: place + 8)
            stage(entry.content.flags, at: place + 16)
        } else if let slot = find(number, in: Layout.handles) {
            remove(slot, from: Layout.handles)
        }
        if let counted { stage(counted, number) }
        if let uncounted { stageRemoval(of: uncounted, number) }
        commit()
        shrink(Layout.handles)
    }

    private func entry(at slot: Int) -> Entry {
        let place = valuePlace(slot, in: Layout.handles)
        let (counts, closing) = (memory[place], memory[place + 8])
        return Entry(
            count: UInt32(truncatingIfNeeded: counts), writers: UInt32(counts >> 32),
            closing: UInt32(truncatingIfNeeded: closing),
            content: OpenContent(flags: memory[place + 16], backing: Int32(bitPattern: UInt32(closing >> 32))))
    }

    // MARK: - Counted requests

    func hasCounted(_ request: CountedRequest, for number: UInt64) -> Bool {
        ringPlace(of: request, number) != nil
    }

    private func ringPlace(of request: CountedRequest, _ number: UInt64) -> Int? {
        let count = Int(truncatingIfNeeded: memory[Layout.ringCountWord])
        // The newest first, because a count that is taken back was usually made just now.
        for position in stride(from: count - 1, through: max(0, count - ringCapacity), by: -1) {
            let place = Layout.ring + position % ringCapacity * 16
            if memory[place] == request.word, memory[place + 8] == number { return place }
        }
        return nil
    }

    mutating func stage(_ request: CountedRequest, _ number: UInt64) {
        let count = memory[Layout.ringCountWord]
        let place = Layout.ring + Int(count % UInt64(ringCapacity)) * 16
        stage(request.word, at: place)
        stage(number, at: place + 8)
        stage(count + 1, at: Layout.ringCountWord)
    }

    mutating func stageRemoval(of request: CountedRequest, _ number: UInt64) {
        if let place = ringPlace(of: request, number) { stage(0, at: place) }
    }

    // MARK: - Atomic changes

    /// Whether the change in preparation inserts a key: the value of its slot is then outdated.
    var hasStagedWords: Bool { staged > 0 }

    /// Adds a word to the redo record. It must not be in it already.
    mutating func stage(_ word: UInt64, at offset: Int) {
        precondition(staged < Layout.redoCapacity, "the redo record is full")
        let place = Layout.redoWord + 8 + staged * 16
        memory[place] = UInt64(offset)
        memory[place + 8] = word
        staged += 1
    }

    /// Makes the staged words one change.
    mutating func commit() {
        guard staged > 0 else { return }
        memory[Layout.redoWord] = UInt64(staged)
        apply(staged)
        staged = 0
    }

    private mutating func apply(_ count: Int) {
        for word in 0..<count {
            let place = Layout.redoWord + 8 + word * 16
            memory[Int(memory[place])] = memory[place + 8]
        }
        memory[Layout.redoWord] = 0
    }

    // MARK: - Inherited memory

    private func checkHeader() throws(HandleTableError) {
        guard memory.count >= Layout.ring, memory[Layout.magicWord] == Layout.magic else { throw .foreign }
        try Self.check(layout: memory[Layout.versionWord])
        let ringCapacity = memory[Layout.ringCapacityWord]
        guard ringCapacity > 0, ringCapacity <= 1 << 20,
            Layout.end(ringCapacity: Int(ringCapacity)) <= memory.count
        else { throw .corrupt("the ring has \(ringCapacity) places") }
        guard memory[Layout.redoWord] <= Layout.redoCapacity else { throw .corrupt("the redo record is too long") }
    }

    private func checkContents() throws(HandleTableError) {
        guard memory[Layout.descriptionWord] >> 32 <= 1, descriptionPlace.count <= Layout.descriptionCapacity else {
            throw .corrupt("the description has \(descriptionPlace.count) bytes")
        }
        var end = Layout.end(ringCapacity: ringCapacity)
        var extents: [Range<Int>] = []
        for region in Layout.regions { extents.append(try checkedExtent(of: region)) }
        for extent in extents.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            guard extent.lowerBound >= end else { throw .corrupt("two regions overlap") }
            end = extent.upperBound
        }
        for region in Layout.regions { try checkKeys(of: region) }
        try checkLookups()
        for number in openNumbers {
            guard let entry = entry(of: number), entry.count > 0, entry.writers <= entry.count,
                entry.closing <= entry.writers
            else { throw .corrupt("inode \(number) has impossible counts") }
        }
    }
}

extension HandleTable.OpenContent {
    fileprivate init(flags: UInt64, backing: Int32) {
        isDecided = flags & 1 != 0
        isComplete = flags & 2 != 0
        isWritten = flags & 4 != 0
        isUsed = flags & 8 != 0
        if flags & 16 != 0 { self.backing = backing }
    }

    fileprivate var flags: UInt64 {
        (isDecided ? 1 : 0) | (isComplete ? 2 : 0) | (isWritten ? 4 : 0) | (isUsed ? 8 : 0)
            | (backing != nil ? 16 : 0)
    }
}
