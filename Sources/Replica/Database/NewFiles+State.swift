import FileProvider

extension NewFiles {
    struct Place: Hashable {
        let directory: InodeNumber
        let name: [UInt8]
    }

    /// All of it is behind the lock of ``NewFiles``, which alone has one.
    struct State {
        var log: NewFileLog?
        var waiting: [NewFile] = []
        /// Taken by the transaction that is writing them.
        var taken: [NewFile] = []
        /// Where the ones and the others are, and when a directory got the last of them.
        var places: Set<Place> = []
        var touched: [InodeNumber: FileTimestamp] = [:]
        /// With their sequences.
        var numbers: [InodeNumber: Int64] = [:]

        var reserved: Range<Int64> = 0..<0
        var wantsNumbers = false
        var lastSequence: Int64 = 0
        /// Transactions that may change names: how many run, and how many have begun.
        var claims = 0
        var era = NameEra()
        /// Whether the last ones could not be written.
        var isStuck = false
        /// Whether a task is scheduled that writes those that wait.
        var isScheduled = false
        /// The rules of the directories that got the last files.
        var rules: [InodeNumber: CreationRules] = [:]
        /// A name that was looked for and is not there.
        var absence: (place: Place, era: NameEra)?
        var names = KnownNames()
        /// The newest files that requests have made, in the log also after they were written: the log is the record of the
        /// answers to these requests.
        var answered: [NewFile] = []
        /// How often some of them have got into the database.
        var writes: UInt64 = 0

        var point: QueryPoint { QueryPoint(era: era, writes: writes) }

        /// Whether the result of a query that began at that point, and the files that wait, are together all names.
        func isCurrent(_ point: QueryPoint) -> Bool { claims == 0 && era == point.era && writes == point.writes }

        /// Where a file is in ``waiting`` or ``taken``, whose sequences have no gaps.
        func index(of number: InodeNumber, in files: [NewFile]) -> Int? {
            guard let sequence = numbers[number], let first = files.first?.sequence else { return nil }
            let index = Int(sequence - first)
            return files.indices.contains(index) && files[index].number == number ? index : nil
        }

        func isFree(_ place: Place) -> Bool {
            absence.map { $0.era == era && $0.place == place } ?? false
                || (!places.contains(place) && names.lacks(place.name, in: place.directory, era))
        }

        /// The violations of invariants 2 and 4.
        func violations(count: Int) -> [String] {
            let files = taken + waiting
            var expected = State()
            for file in files { expected.note(file) }
            var found: [String] = []
            if expected.places != places { found.append("places do not describe the files") }
            if expected.numbers != numbers { found.append("numbers do not describe the files") }
            if expected.touched != touched { found.append("times of directories do not describe the files") }
            if count != files.count { found.append("the count is \(count) and not \(files.count)") }
            let sequences = files.map(\.sequence)
            let hasGap = zip(sequences, sequences.dropFirst()).contains { $0 + 1 != $1 }
            if hasGap || sequences.last ?? 0 > lastSequence {
                found.append("sequences are out of order")
            }
            if files.contains(where: { reserved.contains($0.number.rawValue) }) {
                found.append("a number in use is reserved")
            }
            if claims < 0 { found.append("more claims were released than taken") }
            if places.contains(where: { isRememberedAsAbsent($0) }) {
                found.append("a name that waits is remembered as absent")
            }
            return found
        }

        private func isRememberedAsAbsent(_ place: Place) -> Bool {
            absence.map { $0.era == era && $0.place == place } ?? false
                || names.lacks(place.name, in: place.directory, era)
        }

        mutating func noteAnswered(_ files: [NewFile]) {
            answered += files
            let most = Int(RecordedAnswers.most)
            if answered.count >= 2 * most { answered.removeFirst(answered.count - most) }
        }

        mutating func note(_ file: NewFile) {
            let item = file.creation.item
            places.insert(Place(directory: item.parent, name: Array(item.name.utf8)))
            touched[item.parent] = item.madeAt
            numbers[file.number] = file.sequence
        }
    }
}
