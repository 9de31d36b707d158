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
            byListing: stride(from: value - 1, to: 9, by: -1).map { file($0) })
    }

    private func read(_ predictor: inout ReadPredictor, _ value: Int64) -> [Int64] {
        predictor.read(InodeNumber(rawValue: value), in: directory, following: following(value)).map(\.rawValue)
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
                InodeNumber(rawValue: value), in: directory, following: .init(byName: left, byListing: []))
        }
        let wanted = predictor.read(
            InodeNumber(rawValue: 3), in: directory,
            following: .init(byName: Array(next.dropFirst()), byListing: []), mostBytes: 50)
        #expect(wanted.map(\.rawValue) == [5])
    }
}
