import Testing

@testable import SFTPProvider

@Suite struct SFTPWindowTests {
    /// Sends messages over a line, as many as the window allows, and returns the bytes that were in flight at the end.
    private func send(_ count: Int, _ window: inout SFTPWindow, bytesPerSecond: Double, roundTrip: Duration) -> Int64 {
        var inFlight: [(count: Int64, sent: Duration, arrives: Duration)] = []
        var (now, isFree) = (Duration.zero, Duration.zero)
        for _ in 0..<count {
            while inFlight.isEmpty || window.hasRoom(for: window.pieceLength) {
                let piece = window.pieceLength
                window.begin(piece)
                isFree = max(isFree, now) + .seconds(Double(piece) / bytesPerSecond)
                inFlight.append((piece, now, isFree + roundTrip))
            }
            let first = inFlight.removeFirst()
            now = first.arrives
            window.end(first.count, after: first.arrives - first.sent)
        }
        return inFlight.reduce(0) { $0 + $1.count }
    }

    @Test func aSlowLineHasLittleInFlight() {
        var window = SFTPWindow()
        window.end(0, after: .milliseconds(50))
        #expect(send(50, &window, bytesPerSecond: 20_000, roundTrip: .milliseconds(50)) <= 64 << 10)
        #expect(window.pieceLength == SFTPWindow.smallestPiece)
    }

    @Test func aFastDistantLineIsFilled() {
        var window = SFTPWindow()
        window.end(0, after: .milliseconds(200))
        _ = send(200, &window, bytesPerSecond: 100_000_000, roundTrip: .milliseconds(200))
        #expect(window.limit == SFTPWindow.largest)
    }

    @Test func aLineThatBecomesFastIsFilledAgain() {
        var window = SFTPWindow()
        window.end(0, after: .milliseconds(50))
        _ = send(50, &window, bytesPerSecond: 20_000, roundTrip: .milliseconds(50))
        _ = send(1000, &window, bytesPerSecond: 100_000_000, roundTrip: .milliseconds(50))
        #expect(window.limit == SFTPWindow.largest)
    }
}
