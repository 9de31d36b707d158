import Testing

@testable import SFTPProvider

@Suite struct SFTPWindowTests {
    /// Sends messages over a line, as many as the window allows.
    private func send(_ count: Int, _ window: inout SFTPWindow, bytesPerSecond: Double, roundTrip: Duration) {
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
        for piece in inFlight { window.end(piece.count, after: piece.arrives - piece.sent) }
    }

    @Test func aSlowLineHasLittleInFlight() {
        var window = SFTPWindow()
        send(50, &window, bytesPerSecond: 20_000, roundTrip: .milliseconds(50))
        #expect(window.limit == 32 << 10)
        #expect(!window.isWide)
    }

    @Test func aFastDistantLineIsFilled() {
        var window = SFTPWindow()
        send(200, &window, bytesPerSecond: 100_000_000, roundTrip: .milliseconds(200))
        #expect(window.limit == SFTPWindow.largest && window.isWide)
    }

    @Test func aServerThatNeedsLongForEachMessageHasManyInFlight() {
        var window = SFTPWindow()
        send(200, &window, bytesPerSecond: 100_000_000, roundTrip: .seconds(2))
        #expect(window.limit == SFTPWindow.largest)
    }

    @Test func aLineThatBecomesFastIsFilledAgain() {
        var window = SFTPWindow()
        send(50, &window, bytesPerSecond: 20_000, roundTrip: .milliseconds(50))
        send(1000, &window, bytesPerSecond: 100_000_000, roundTrip: .milliseconds(50))
        #expect(window.limit == SFTPWindow.largest)
    }
}
