import Replica
import Testing

@testable import Sync

@Suite struct WalkPredictorTests {
    private func number(_ value: Int64) -> InodeNumber { InodeNumber(rawValue: value) }

    @Test func oneListingIsNoWalk() {
        var predictor = WalkPredictor()
        predictor.listed(number(1), parent: nil, children: [number(2), number(3)])
        #expect(predictor.next() == nil)
        predictor.listed(number(2), parent: number(1), children: [])
        #expect(predictor.next() == nil)
    }

    @Test func aWalkIsFollowedDepthFirst() {
        var predictor = WalkPredictor()
        predictor.listed(number(1), parent: nil, children: [number(2), number(3), number(4)])
        predictor.listed(number(2), parent: number(1), children: [number(20), number(21)])
        predictor.listed(number(20), parent: number(2), children: [])
        #expect(predictor.isWalking)
        #expect(predictor.next() == number(21))
        // Every other one from the other end.
        #expect(predictor.next() == number(4))
        predictor.foundAhead(in: number(4), children: [number(40), number(41)])
        #expect(predictor.next() == number(3))
        // Last of all.
        #expect(predictor.next() == number(41))
        #expect(predictor.next() == number(40))
        #expect(predictor.next() == nil)
    }

    @Test func aWalkerThatGoesElsewhereIsNotFollowed() {
        var predictor = WalkPredictor()
        predictor.listed(number(1), parent: nil, children: [number(2), number(3)])
        predictor.listed(number(2), parent: number(1), children: [])
        predictor.listed(number(3), parent: number(1), children: [number(30)])
        #expect(predictor.isWalking)
        predictor.listed(number(99), parent: number(98), children: [number(100)])
        #expect(predictor.next() == nil)
    }

    @Test func directoriesAheadAreBounded() {
        var predictor = WalkPredictor()
        let children = (10..<1000).map { number($0) }
        predictor.listed(number(1), parent: nil, children: [number(2), number(3)])
        predictor.listed(number(2), parent: number(1), children: [])
        predictor.listed(number(3), parent: number(1), children: children)
        var ahead = 0
        while predictor.next() != nil { ahead += 1 }
        #expect(ahead == 32)
    }

    @Test func farDirectoriesLeaveRoomForNearOnes() {
        var predictor = WalkPredictor()
        var isListed: Set<InodeNumber> = []
        func children(_ directory: InodeNumber) -> [InodeNumber] {
            let value = directory.rawValue
            let all: ClosedRange<Int64>? =
                switch value {
                case 1: 1_000...1_799
                case 1_000..<1_800: value * 10...value * 10 + 2
                default: nil
                }
            return (all.map(Array.init) ?? []).map(number).filter { !isListed.contains($0) }
        }
        var misses = 0
        func walk(_ directory: InodeNumber, from parent: InodeNumber?) {
            if isListed.insert(directory).inserted { misses += 1 }
            predictor.listed(directory, parent: parent, children: children(directory))
            while let next = predictor.next() {
                isListed.insert(next)
                predictor.foundAhead(in: next, children: children(next))
            }
        }
        walk(number(1), from: nil)
        for value in Int64(1_000)..<1_800 {
            walk(number(value), from: number(1))
            for below in value * 10...value * 10 + 2 { walk(number(below), from: number(value)) }
        }
        // Before it is a walk, and until it is known how fast.
        #expect(misses < 20, "\(misses)")
    }

    @Test func aWalkerThatHadToWaitIsFollowedFurther() {
        var predictor = WalkPredictor()
        let wide = (100..<400).map { number($0) }
        predictor.listed(number(1), parent: nil, children: [number(2)] + wide)
        predictor.listed(number(2), parent: number(1), children: [number(3)])
        predictor.listed(number(3), parent: number(2), children: [number(4)])
        while predictor.next() != nil {}
        #expect(predictor.ahead.count == 32)
        // It comes where nothing was listed ahead: all that was is elsewhere.
        predictor.listed(number(5), parent: number(3), children: [])
        while predictor.next() != nil {}
        #expect(predictor.ahead.count == 2 * 32)
    }

    @Test func aWalkerThatComesBackFromADeepTreeIsFollowedOn() {
        var predictor = WalkPredictor()
        predictor.listed(number(1), parent: nil, children: [number(2), number(3), number(4)])
        predictor.listed(number(2), parent: number(1), children: [number(1000)])
        // A long way down, longer than what is remembered of the way.
        let last = 1000 + Int64(WalkPredictor.memory)
        for value in 1000...last {
            predictor.listed(
                number(value), parent: number(value == 1000 ? 2 : value - 1), children: [number(value + 1)])
        }
        predictor.listed(number(last + 1), parent: number(last), children: [])
        // It opens what it has been in on the way.
        predictor.listed(number(1000), parent: number(2), children: [])
        predictor.listed(number(2), parent: number(1), children: [])
        predictor.listed(number(3), parent: number(1), children: [number(30)])
        #expect(predictor.isWalking)
        #expect(predictor.next() == number(30))
        #expect(predictor.next() == number(4))
        #expect(predictor.next() == nil)
    }
}
