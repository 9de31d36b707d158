import FileProvider
import FileProviderPaths
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server, .timing)) struct StragglerTests {
    @Test("S3-9: only who changes the place of what is on its way waits for it")
    func waitsOnlyWhereSomethingIsOnItsWay() async throws {
        let ledger = OperationLedger(LedgerState.Settings(grace: .milliseconds(300)...(.seconds(30))))
        func settling(_ places: [PathExtent]) async throws -> Duration {
            try await ContinuousClock().measure {
                try await ledger.settle(over: places) {}
            }
        }
        ledger.noteUnknown("top/a/x")
        #expect(
            try await settling([.below("top/b/"), .exactly("top/a"), .below("top/a/x/"), .within("top/")])
                < .milliseconds(200))
        #expect(try await settling([.below("top/a/")]) >= .milliseconds(290))
        ledger.noteUnknown("top/a/x")
        #expect(try await settling([.exactly("top/a/x")]) >= .milliseconds(290))
        // It has been heard of since, and nothing has come.
        #expect(try await settling([.within("top/a/")]) < .milliseconds(200))
    }

    @Test("S3-9: what arrives late is moved with the directory that it was sent to")
    func lateArrivalIsMovedToo() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "a/file", "text")
            remote.client.ledger.noteUnknown(bucket.prefix + "a/late")
            let late = Task {
                try await Task.sleep(for: .milliseconds(700))
                try await bucket.put(bucket.prefix + "a/late", "late")
            }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            try await late.value
            let keys = try await bucket.keys()
            #expect(keys == [bucket.prefix + "b/file", bucket.prefix + "b/late"])
        }
    }

    @Test("S3-9: a copy that is made late is taken back with the renaming that it is of", arguments: ["a/", "file"])
    func lateCopiesAreTakenBackToo(from place: String) async throws {
        try await withBucket { bucket, remote in
            let isTree = place.hasSuffix("/")
            let (original, copy) = (bucket.prefix + place, bucket.prefix + (isTree ? "b/" : "copy"))
            let below = isTree ? "below" : ""
            try await bucket.put(original + below, "text")
            let rename = MoveRecord(
                from: original, to: copy, stage: .copying, begun: FileTimestamp.now.seconds, identifier: "own")
            try remote.moves.save(rename)
            remote.client.ledger.noteUnknown(copy + below)
            let late = Task {
                try await Task.sleep(for: .milliseconds(700))
                try await bucket.put(copy: copy + below, "text", of: rename)
            }
            let (path, newPath) = (RemotePath([isTree ? "a" : place]), RemotePath("elsewhere"))
            _ = try await remote.move(path, to: newPath, kind: isTree ? .directory : .file)
            try await late.value
            #expect(try await bucket.keys() == [bucket.prefix + (isTree ? "elsewhere/below" : "elsewhere")])
        }
    }

    @Test("S3-9: a lookup at the place of a request in flight sees its outcome")
    func looksWaitToo() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "a/file", "text")
            for look in ["entry", "entries"] {
                remote.client.ledger.noteUnknown(bucket.prefix + "a/" + look)
                let late = Task {
                    try await Task.sleep(for: .milliseconds(700))
                    try await bucket.put(bucket.prefix + "a/" + look, "late")
                }
                if look == "entry" {
                    #expect(try await remote.entry(at: RemotePath("a/entry")).size == 4)
                } else {
                    let names = try await remote.entries(in: RemotePath("a"), from: nil, limit: 100).entries.map(\.name)
                    #expect(names == ["entries", "entry", "file"])
                }
                try await late.value
            }
        }
    }

    @Test("S3-9: the slower a server is, the longer is waited")
    func slowServersAreWaitedForLonger() async throws {
        let ledger = OperationLedger(LedgerState.Settings(grace: .milliseconds(50)...(.seconds(30))))
        ledger.noteResponse(after: .milliseconds(200))
        ledger.noteResponse(after: .milliseconds(1))
        ledger.noteUnknown("key")
        let took = try await ContinuousClock().measure { try await ledger.settle(over: [.exactly("key")]) {} }
        #expect(took >= .milliseconds(590))
    }

    @Test("S3-9: after a process that was killed something may be on its way to anywhere")
    func requestOfAKilledProcessMayArrive() async throws {
        let store = ReportingStore.temporary
        func start(_ path: String = "any") async throws -> (OperationLedger, Duration) {
            let settings = LedgerState.Settings(grace: .milliseconds(300)...(.seconds(30)))
            let ledger = OperationLedger(settings, in: store)
            let took = try await ContinuousClock().measure { try await ledger.settle(over: [.exactly(path)]) {} }
            return (ledger, took)
        }
        let (first, none) = try await start()
        #expect(none < .milliseconds(200))
        _ = first.send(["in flight"])
        // Killed: it neither ends nor closes.
        let (second, long) = try await start()
        #expect(long >= .milliseconds(290))
        let number = second.send(["sent just now"])
        second.end(number, .unknown(.deleted))
        second.close()
        // After an orderly end it is known where: only there it is waited.
        let (third, elsewhere) = try await start()
        #expect(elsewhere < .milliseconds(200))
        third.close()
        let (fourth, again) = try await start("sent just now")
        #expect(again >= .milliseconds(290))
        fourth.close()
    }
}
