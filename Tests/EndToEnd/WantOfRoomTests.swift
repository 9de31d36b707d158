import Testing

@testable import Daemon

/// Domains that found no room on the disk.
@Suite struct WantOfRoomTests {
    @Test(
        "MOUNT-7: a domain is tried again with a megabyte more, or after five minutes",
        arguments: [
            (0, 1, false), (1 << 20, 1, false), (-5 << 20, 1, false), (1 << 20 + 1, 1, true), (0, 299, false),
            (-7, 301, true),
        ]
            as [(Int, Int, Bool)])
    func whenTried(more: Int, seconds: Int, isTried: Bool) {
        let want = Domains.WantOfRoom(reason: "full", available: 100 << 20)
        let available = UInt64(Int(want.available) + more)
        #expect(Domains.isWorthTrying(want, available, at: want.triedAt + .seconds(seconds)) == isTried)
    }
}
