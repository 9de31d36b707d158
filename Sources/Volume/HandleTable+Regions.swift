import Syscalls
import SystemPackage

/// The hash tables of a ``HandleTable``: open addressing with linear probing.
///
/// A region has an array of keys and an array of values. A key of 0 is an empty slot, ``HandleTable/removedKey`` one whose
/// key was removed.
extension HandleTable {
    struct Region {
        /// The offset of its words in the header: where it is, its capacity, its keys, and its keys with the removed ones.
        let header: Int
        /// In bytes: whole words.
        let valueSize: Int
        let minimumCapacity: Int

        var offset: Int { header }
        var capacity: Int { header + 8 }
        var live: Int { header + 16 }
        var used: Int { header + 24 }

        /// The size in bytes: whole pages, because capacities are powers of two.
        func size(_ capacity: Int) -> Int { capacity * (8 + valueSize) }
    }

    private static let removedKey = UInt64.max
    /// The removed keys before an emptied slot that one removal empties as well.
    private static let maximumEmptied = 8
    /// The size of a region that is not made smaller.
    private static let smallSize = 256 * 1024

    /// The slot in which the search for a key begins. (Fibonacci hashing)
    private static func firstSlot(_ key: UInt64, capacity: Int) -> Int {
        Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> UInt64(64 - capacity.trailingZeroBitCount))
    }

    func find(_ key: UInt64, in region: Region) -> Int? {
        guard Self.isKey(key) else { return nil }
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        var slot = Self.firstSlot(key, capacity: capacity)
        while true {
            let found = memory[start + slot * 8]
            if found == key { return slot }
            if found == 0 { return nil }
            slot = (slot + 1) & (capacity - 1)
        }
    }

    /// The slot of a key, which is staged to be inserted if it is new. A new slot has the value of
    /// the last key that was removed from it, or zero.
    mutating func slot(for key: UInt64, in region: Region) -> Int {
        precondition(Self.isKey(key), "not an inode number")
        if let slot = find(key, in: region) { return slot }
        if (memory[region.used] + 1) * 4 > memory[region.capacity] * 3 { rehash(region) }
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        var slot = Self.firstSlot(key, capacity: capacity)
        var found = memory[start + slot * 8]
        while Self.isKey(found) {
            slot = (slot + 1) & (capacity - 1)
            found = memory[start + slot * 8]
        }
        stage(key, at: start + slot * 8)
        stage(memory[region.live] + 1, at: region.live)
        if found == 0 { stage(memory[region.used] + 1, at: region.used) }
        return slot
    }

    /// Stages the removal of a slot's key.
    mutating func remove(_ slot: Int, from region: Region) {
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        stage(memory[region.live] - 1, at: region.live)
        guard memory[start + ((slot + 1) & (capacity - 1)) * 8] == 0 else {
            stage(Self.removedKey, at: start + slot * 8)
            return
        }
        // No search goes on behind this slot, nor behind removed keys directly before it.
        var (emptied, emptiedSlot) = (0, slot)
        repeat {
            stage(0, at: start + emptiedSlot * 8)
            emptied += 1
            emptiedSlot = (emptiedSlot - 1) & (capacity - 1)
        } while emptied < Self.maximumEmptied && memory[start + emptiedSlot * 8] == Self.removedKey
        stage(memory[region.used] - UInt64(emptied), at: region.used)
    }

    func valuePlace(_ slot: Int, in region: Region) -> Int {
        Int(memory[region.offset]) + Int(memory[region.capacity]) * 8 + slot * region.valueSize
    }

    /// Whether the word of a slot is a key.
    static func isKey(_ word: UInt64) -> Bool { word != 0 && word != removedKey }

    func keys(of region: Region) -> [UInt64] {
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        return (0..<capacity).map { memory[start + $0 * 8] }.filter { Self.isKey($0) }
    }

    // MARK: - Growing

    /// Releases memory after the kernel has dropped its caches.
    mutating func shrink(_ region: Region) {
        let capacity = Int(memory[region.capacity])
        if region.size(capacity) > Self.smallSize, memory[region.live] < capacity / 16 { rehash(region) }
    }

    /// Copies the keys and values to another place with a capacity for twice the number, without removed keys.
    private mutating func rehash(_ region: Region) {
        precondition(!hasStagedWords, "a change in preparation refers to the slots")
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        let live = Int(memory[region.live])
        var newCapacity = region.minimumCapacity
        while newCapacity * 5 < live * 8 { newCapacity *= 2 }
        let newStart: Int
        do throws(Errno) {
            newStart = try makePlace(for: region.size(newCapacity))
        } catch {
            // As for any other memory that the process cannot get.
            fatalError("the table of open files cannot grow: \(error)")
        }
        for slot in 0..<capacity {
            let key = memory[start + slot * 8]
            guard Self.isKey(key) else { continue }
            var newSlot = Self.firstSlot(key, capacity: newCapacity)
            while memory[newStart + newSlot * 8] != 0 { newSlot = (newSlot + 1) & (newCapacity - 1) }
            memory[newStart + newSlot * 8] = key
            let value = start + capacity * 8 + slot * region.valueSize
            let newValue = newStart + newCapacity * 8 + newSlot * region.valueSize
            for word in stride(from: 0, to: region.valueSize, by: 8) {
                memory[newValue + word] = memory[value + word]
            }
        }
        stage(UInt64(newStart), at: region.offset)
        stage(UInt64(newCapacity), at: region.capacity)
        stage(UInt64(live), at: region.used)
        commit()
        // Returned to the system. A process that is killed before leaves it until the place is used again.
        try? memory.clear(start..<start + region.size(capacity))
    }

    /// Zeroed bytes that belong to no region.
    private mutating func makePlace(for size: Int) throws(Errno) -> Int {
        let taken = Layout.regions.map { extent(of: $0) }.sorted { $0.lowerBound < $1.lowerBound }
        var place = Layout.end(ringCapacity: ringCapacity)
        for extent in taken where place + size > extent.lowerBound { place = max(place, extent.upperBound) }
        let range = place..<place + size
        // A process that was killed while it copied may have left something here.
        if range.lowerBound < memory.count {
            try memory.clear(range.lowerBound..<min(range.upperBound, memory.count))
        }
        try memory.grow(to: range.upperBound)
        return place
    }

    private func extent(of region: Region) -> Range<Int> {
        let start = Int(memory[region.offset])
        return start..<start + region.size(Int(memory[region.capacity]))
    }

    // MARK: - Inherited memory

    /// Verifies that a region lies in the memory.
    func checkedExtent(of region: Region) throws(HandleTableError) -> Range<Int> {
        let (start, capacity) = (memory[region.offset], memory[region.capacity])
        guard capacity >= region.minimumCapacity, capacity <= memory.count, capacity.nonzeroBitCount == 1,
            start >= Layout.end(ringCapacity: ringCapacity), start <= memory.count,
            start % UInt64(Layout.page) == 0, Int(start) + region.size(Int(capacity)) <= memory.count
        else { throw .corrupt("a region of \(capacity) slots lies at \(start)") }
        return extent(of: region)
    }

    /// Verifies that each key is found, and that the numbers of keys are right.
    func checkKeys(of region: Region) throws(HandleTableError) {
        let (start, capacity) = (Int(memory[region.offset]), Int(memory[region.capacity]))
        var (live, removed) = (UInt64(0), UInt64(0))
        for slot in 0..<capacity {
            switch memory[start + slot * 8] {
            case 0: break
            case Self.removedKey: removed += 1
            default: live += 1
            }
        }
        guard live == memory[region.live], live + removed == memory[region.used], live + removed < capacity else {
            throw .corrupt("\(live) keys in a region that counts \(memory[region.live])")
        }
        for slot in 0..<capacity {
            let key = memory[start + slot * 8]
            guard !Self.isKey(key) || find(key, in: region) == slot else {
                throw .corrupt("inode \(key) is not found")
            }
        }
    }
}
