import Replica
import Testing

@testable import Sync

@Suite struct ReadPredictorTests {
    private let directory = InodeNumber(rawValue: 1)

    private func file(_ value: Int64, size: Int64 = 10, isDataless: Bool = true) -> SiblingFile {
        SiblingFile(number: InodeNumber(rawValue: value), size: size, isDataless: isDataless)
    }

    /// What follows a file where the names run against the listing: by name 10, 11, 12…, by listing the other way.
    private func following(_ value: Int64) -> ReadPredictor.Following {
        ReadPredictor.Following(
            byName: (value + 1..<200).map { file($0) },
            byListing: stride(from: value - 1, to: 9, by: -1).map { file($0) }, around: [])
    }

    private func read(_ predictor: inout ReadPredictor, _ value: Int64) -> [Int64] {
        predictor.read(InodeNumber(rawValue: value), in: directory, following: following(value)).map(\.rawValue)
    }

    /// Reads a file of a directory with the files 1000 to 2000.
    private func read(
        _ predictor: inout ReadPredictor, any value: Int64, in directory: Int64 = 1,
        at seconds: Double = 0, mostBytes: Int64 = ReadPredictor.mostBytes
    ) -> [Int64] {
        let others = Array(value + 1..<2000) + Array(1000..<value)
        let following = ReadPredictor.Following(byName: [], byListing: [], around: others.map { file($0) })
        return predictor.read(
            InodeNumber(rawValue: value), in: InodeNumber(rawValue: directory), following: following,
            mostBytes: mostBytes, at: start + .seconds(seconds)
        ).map(\.rawValue)
    }

    private let start = ContinuousClock.now
    /// Far from each other.
    private let inAnyOrder: [Int64] = [1500, 1900, 1100, 1700, 1300, 1800, 1200, 1600, 1400]

    @Test func fourInAnyOrderAreAReader() {
        var predictor = ReadPredictor()
        let counts = inAnyOrder.map { read(&predictor, any: $0).count }
        // The number ahead of the reader doubles.
        #expect(counts == [0, 0, 0, 8, 8, 16, 32, 64, 128])
        #expect(predictor.ahead.count == ReadPredictor.largestUnorderedWindow)
        // A reader that reads none of them is not followed further; one that reads one gets another.
        #expect(read(&predictor, any: 1999).isEmpty)
        let next = predictor.ahead.map(\.rawValue).min() ?? 0
        #expect(read(&predictor, any: next).count == 1)
    }

    @Test func whatIsAheadHasAWholeSize() {
        var predictor = ReadPredictor()
        for value in inAnyOrder { _ = read(&predictor, any: value, mostBytes: 300) }
        #expect(predictor.ahead.count == 30)
    }

    @Test func readsWithPausesAreNoReader() {
        var predictor = ReadPredictor()
        for (number, value) in inAnyOrder.enumerated() {
            #expect(read(&predictor, any: value, at: Double(number) * 2.5).isEmpty)
        }
    }

    @Test func twoDirectoriesInTurnAreAReaderInEach() {
        var predictor = ReadPredictor()
        for value in inAnyOrder.prefix(3) {
            #expect(read(&predictor, any: value, in: 1).isEmpty)
            #expect(read(&predictor, any: value, in: 2).isEmpty)
        }
        #expect(read(&predictor, any: inAnyOrder[3], in: 1).count == 8)
        #expect(read(&predictor, any: inAnyOrder[3], in: 2).count == 8)
    }

    @Test func aReaderThatUsesWhatIsFetchedIsFollowedIntoTheNextDirectory() {
        var predictor = ReadPredictor()
        for value in inAnyOrder.prefix(4) { _ = read(&predictor, any: value, in: 1) }
        #expect(predictor.ahead.count == 8)
        // It leaves the directory with all of that unread.
        #expect(read(&predictor, any: 1500, in: 2).isEmpty)
        // Directories of twelve files.
        func readOne(_ value: Int64, in directory: Int64, _ isHere: Set<Int64>) -> [Int64] {
            let others = (0..<12).filter { $0 != value }.map { file($0, isDataless: !isHere.contains($0)) }
            return predictor.read(
                InodeNumber(rawValue: value), in: InodeNumber(rawValue: directory),
                following: .init(byName: [], byListing: [], around: others)
            ).map(\.rawValue)
        }
        var isHere: Set<Int64> = []
        for value: Int64 in [5, 0, 9, 2, 7, 11, 1, 3, 4, 10, 6, 8] {
            isHere.formUnion(readOne(value, in: 3, isHere) + [value])
        }
        #expect(readOne(5, in: 4, []).count == 8)
    }

    @Test func threeInARowAreAReader() {
        var predictor = ReadPredictor()
        #expect(read(&predictor, 10).isEmpty)
        #expect(read(&predictor, 11).isEmpty)
        #expect(read(&predictor, 12) == Array(13..<13 + Int64(ReadPredictor.smallestWindow)))
        // The window slides, and grows with what is used.
        #expect(read(&predictor, 13) == [21])
    }

    @Test func theOrderOfTheListingIsOneToo() {
        var predictor = ReadPredictor()
        #expect(read(&predictor, 60).isEmpty)
        #expect(read(&predictor, 59).isEmpty)
        #expect(read(&predictor, 58).first == 57)
    }

    @Test func aReaderMayLeaveAFewOut() {
        var predictor = ReadPredictor()
        _ = read(&predictor, 10)
        _ = read(&predictor, 13)
        #expect(read(&predictor, 15).first == 16)
        #expect(read(&predictor, 100).isEmpty)
    }

    @Test func anotherDirectoryBeginsAnew() {
        var predictor = ReadPredictor()
        for value: Int64 in 10..<13 { _ = read(&predictor, value) }
        #expect(!predictor.ahead.isEmpty)
        let other = predictor.read(
            InodeNumber(rawValue: 13), in: InodeNumber(rawValue: 2), following: following(13))
        #expect(other.isEmpty)
        #expect(predictor.ahead.isEmpty)
    }

    @Test func largeAndLocalFilesAreNotPrefetched() {
        var predictor = ReadPredictor()
        let next = [
            file(3, size: ReadPredictor.largestFile + 1), file(4, isDataless: false), file(5), file(6, size: 90),
            file(7),
        ]
        for (value, left) in [(1, [file(2)] + next), (2, next)] as [(Int64, [SiblingFile])] {
            _ = predictor.read(
                InodeNumber(rawValue: value), in: directory, following: .init(byName: left, byListing: [], around: []))
        }
        let wanted = predictor.read(
            InodeNumber(rawValue: 3), in: directory,
            following: .init(byName: Array(next.dropFirst()), byListing: [], around: []), mostBytes: 50)
        #expect(wanted.map(\.rawValue) == [5])
    }
}
