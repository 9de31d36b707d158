import Syscalls

/// The lookups of each node that the kernel has not forgotten.
///
/// The kernel may know every item of a large domain, and most node numbers are near others. A value of the region has a byte for each of 64
/// nodes in sequence: the count, and a mark for a node without a name. Few counts do not fit into a byte; they have a region of their own.
/// The value of a slot without a key is zero.
extension HandleTable {
    /// The part of a node's byte that is its count.
    private static let countBits: UInt64 = 0x7F
    /// The count of a node whose lookups are in the region of larger counts: all from this one on.
    private static let many: UInt64 = 0x7F
    private static let namelessBit: UInt64 = 0x80

    /// The place of a node's byte.
    private struct Place {
        let slot: Int
        /// The offset of the word that has the byte.
        let word: Int
        let shift: UInt64
    }

    /// The number of nodes that the kernel knows.
    var knownCount: Int { Int(memory[Layout.knownWord]) }

    /// The lookups of a node that the kernel has not forgotten.
    func lookups(of number: UInt64) -> UInt64 {
        guard let place = place(of: number) else { return 0 }
        return count(of: number, byte(at: place))
    }

    /// The nodes that the kernel knows.
    var knownNumbers: [UInt64] {
        keys(of: Layout.lookups).flatMap { key in
            ((key - 1) << 6..<((key - 1) << 6 + 64)).filter { lookups(of: $0) > 0 }
        }
    }

    mutating func noteLookup(of number: UInt64, counting counted: CountedRequest? = nil) {
        precondition(number != 0, "not an inode number")
        if let place = place(of: number), byte(at: place) & Self.countBits >= Self.many - 1 {
            noteManyLookups(of: number, place)
        } else {
            let place = place(number, in: slot(for: Self.key(number), in: Layout.lookups))
            let byte = byte(at: place)
            if byte == 0 { stage(memory[Layout.knownWord] + 1, at: Layout.knownWord) }
            stage(byte + 1, place)
        }
        if let counted { stage(counted, number) }
        commit()
    }

    private mutating func noteManyLookups(of number: UInt64, _ place: Place) {
        let byte = byte(at: place)
        let count = count(of: number, byte)
        let slot = slot(for: number, in: Layout.manyLookups)
        stage(count + 1, at: valuePlace(slot, in: Layout.manyLookups))
        if byte & Self.countBits < Self.many { stage(byte | Self.many, place) }
    }

    /// Decrements the lookup count of a node.
    ///
    /// - Returns: whether it was the last lookup of a node without a name.
    mutating func forget(
        _ number: UInt64, lookups forgotten: UInt64, uncounting uncounted: CountedRequest? = nil
    ) -> Bool {
        if let uncounted { stageRemoval(of: uncounted, number) }
        guard let place = place(of: number), case let byte = byte(at: place), byte != 0 else {
            commit()
            return false
        }
        let before = count(of: number, byte)
        let left = before > forgotten ? before - forgotten : 0
        let larger = byte & Self.countBits == Self.many ? find(number, in: Layout.manyLookups) : nil
        if let larger {
            if left >= Self.many {
                stage(left, at: valuePlace(larger, in: Layout.manyLookups))
            } else {
                remove(larger, from: Layout.manyLookups)
            }
        }
        if left == 0 {
            stage(memory[Layout.knownWord] - 1, at: Layout.knownWord)
            if isOnly(place) { remove(place.slot, from: Layout.lookups) }
            stage(0, place)
        } else if left < Self.many {
            stage(left | byte & Self.namelessBit, place)
        }
        commit()
        shrink(Layout.lookups)
        shrink(Layout.manyLookups)
        return left == 0 && byte & Self.namelessBit != 0
    }

    /// Marks a node that has lost its last name.
    ///
    /// - Returns: whether the kernel knows it.
    mutating func noteNameless(_ number: UInt64) -> Bool {
        guard let place = place(of: number), case let byte = byte(at: place), byte != 0 else { return false }
        if byte & Self.namelessBit == 0 {
            stage(byte | Self.namelessBit, place)
            commit()
        }
        return true
    }

    // MARK: - Bytes

    /// The key of a node and its neighbours.
    private static func key(_ number: UInt64) -> UInt64 { number >> 6 + 1 }

    private func place(of number: UInt64) -> Place? {
        find(Self.key(number), in: Layout.lookups).map { place(number, in: $0) }
    }

    private func place(_ number: UInt64, in slot: Int) -> Place {
        let word = valuePlace(slot, in: Layout.lookups) + Int(number >> 3 & 7) * 8
        return Place(slot: slot, word: word, shift: (number & 7) * 8)
    }

    private func byte(at place: Place) -> UInt64 { memory[place.word] >> place.shift & 0xFF }

    private func count(of number: UInt64, _ byte: UInt64) -> UInt64 {
        guard byte & Self.countBits == Self.many else { return byte & Self.countBits }
        guard let slot = find(number, in: Layout.manyLookups) else { return Self.many }
        return memory[valuePlace(slot, in: Layout.manyLookups)]
    }

    private mutating func stage(_ byte: UInt64, _ place: Place) {
        stage(memory[place.word] & ~(0xFF << place.shift) | byte << place.shift, at: place.word)
    }

    /// Whether the kernel knows none of a node's neighbours.
    private func isOnly(_ place: Place) -> Bool {
        let start = valuePlace(place.slot, in: Layout.lookups)
        return (0..<8).allSatisfy { index in
            let word = start + index * 8
            return memory[word] & (word == place.word ? ~(0xFF << place.shift) : ~0) == 0
        }
    }

    // MARK: - Inherited memory

    /// Verifies that as many nodes are known as the table says, that slots without a key have no counts, and that larger counts are there.
    func checkLookups() throws(HandleTableError) {
        let start = Int(memory[Layout.lookups.offset])
        var (known, larger) = (0, 0)
        for slot in 0..<Int(memory[Layout.lookups.capacity]) {
            let hasKey = Self.isKey(memory[start + slot * 8])
            for index in 0..<8 {
                let word = memory[valuePlace(slot, in: Layout.lookups) + index * 8]
                guard word != 0 else { continue }
                guard hasKey else { throw .corrupt("counts without a node") }
                for shift in stride(from: UInt64(0), to: 64, by: 8) {
                    let byte = word >> shift & 0xFF
                    if byte != 0 { known += 1 }
                    if byte & Self.countBits == Self.many { larger += 1 }
                }
            }
        }
        guard known == knownCount else { throw .corrupt("\(known) nodes instead of \(knownCount)") }
        for number in keys(of: Layout.manyLookups) {
            guard let place = place(of: number), byte(at: place) & Self.countBits == Self.many,
                count(of: number, Self.many) >= Self.many
            else { throw .corrupt("node \(number) has an impossible count") }
        }
        guard larger == Int(memory[Layout.manyLookups.live]) else { throw .corrupt("a node without its count") }
    }
}
