import Testing

@testable import Sync

@Suite struct SyncEventsTests {
    @Test("events end also for a listener that comes when the mount is ending", .timeLimit(.minutes(1)))
    func lateListener() async {
        let events = SyncEvents(domain: "domain")
        let early = events.stream
        events.tell(.online, of: nil, named: "the remote answers again")
        events.finish()
        var kinds: [SyncEvent.Kind] = []
        for stream in [early, events.stream] {
            for await event in stream { kinds.append(event.kind) }
        }
        #expect(kinds == [.online])
    }
}
