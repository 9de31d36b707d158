import FileProviderPaths
import HTTPTransport
import TestSupport
import Testing

@testable import S3Provider

/// What a server does not answer of a probe.
extension OtherServerTests {
    @Test(
        "S3-6: what a server does not answer of a probe is probed again later, and no change waits for that",
        arguments: ["put", "copy"])
    func failedProbe(of method: String) async throws {
        var settings = S3Settings()
        settings.probePause = .zero
        let options = ["fails=\(method)", "holds=top/file"]
        try await StrictStoreProgram.withRemote(options, settings: settings) { store, remote, _ in
            func isSent(ifTagged tag: [UInt8]) async throws -> Bool {
                try await store.log().contains("PUT top/file \(String(decoding: tag, as: UTF8.self))")
            }
            let first = try await write("one", remote, if: .absent)
            #expect(remote.traits.checksConditions == (method == "copy"))
            #expect(remote.preconditions.known?.onCopying == false)
            // It begins the next probe, which has no answer until the release.
            async let writing = write("two", remote, if: .unchanged(tag: first.tag))
            let isWritten = await eventually {
                (try? await store.ask("curl -sS \"$at/bucket/top/file\"")) == "two"
            }
            #expect(isWritten)
            _ = try await store.ask("curl -sS \"$at/release\"")
            let second = try await writing
            let wasConditional = try await isSent(ifTagged: first.tag)
            #expect(wasConditional == (method == "copy"))
            #expect(await eventually { await remote.preconditions.support().onCopying })
            #expect(remote.traits.checksConditions)
            let third = try await write("three", remote, if: .unchanged(tag: second.tag))
            #expect(try await read(remote, third.tag) == "three")
            let isConditional = try await isSent(ifTagged: second.tag)
            #expect(isConditional)
        }
    }

    @Test("S3-6: a write that began with a precondition is sent with it, also where another has met a refusal since")
    func supportOfAWrite() async throws {
        try await withStore("refuses=top/other") { remote, _ in
            let first = try await write("one", remote, if: .absent)
            let support = await remote.preconditions.support()
            let other = try await write("x", remote, if: .absent, to: "other")
            _ = try await write("y", remote, if: .unchanged(tag: other.tag), to: "other")
            #expect(!remote.traits.checksConditions)
            var sent: HTTPFields = [:]
            try await remote.preconditions.sending(
                .unchanged(tag: first.tag), support, tag: "\"tag\"", isUnchanged: { true }, look: {}
            ) { sent = $0 }
            #expect(sent["If-Match"] == "\"tag\"")
        }
    }

    @Test("S3-6: a server that did not answer a probe is not probed before every write")
    func pauseAfterProbe() async throws {
        try await withStore("fails=put") { remote, store in
            func probes() async throws -> Int {
                try await store.log().filter { $0.hasPrefix("PUT top/.yonder") }.count
            }
            let first = try await write("one", remote, if: .absent)
            let before = try await probes()
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            let after = try await probes()
            #expect(before > 0 && after == before)
        }
    }
}
