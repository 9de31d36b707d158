import FileProvider
import FileProviderTesting
import PathAddressing
import Testing

@testable import S3Provider

@Suite struct StragglerTests {
    @Test("S191: only who changes the place of what is on its way waits for it")
    func waitsOnlyWhereSomethingIsOnItsWay() async throws {
        let stragglers = Stragglers(patience: .milliseconds(300))
        func settling(_ places: [String]) async throws -> Duration {
            try await ContinuousClock().measure {
                try await stragglers.settle(over: places) {}
            }
        }
        stragglers.note("top/a/x")
        #expect(try await settling(["top/b/", "top/a", "top/a/x/"]) < .milliseconds(200))
        #expect(try await settling(["top/a/"]) >= .milliseconds(290))
        stragglers.note("top/a/x")
        #expect(try await settling(["top/a/x"]) >= .milliseconds(290))
        // It has been heard of since, and nothing has come.
        #expect(try await settling(["top/a/x"]) < .milliseconds(200))
    }

    @Test("S191: what arrives late is moved with the directory that it was sent to")
    func whatArrivesLateIsMovedToo() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "a/file", "text")
            remote.client.stragglers.note(bucket.prefix + "a/late")
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
}
