import FileProvider
import Foundation
import HTTPTransport
import Synchronization
import SystemPackage
import Testing
import TestSupport

@Suite(.tags(.server)) struct UploadTests {
    /// A file's content as a source.
    private func withSource(
        _ count: Int, confirm: @escaping @Sendable () throws -> Void = {},
        progress: @escaping @Sendable (Int64) -> Void = { _ in },
        _ body: (ContentSource) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let path = try scratch.makeFile("content", servedContent.prefix(count))
        let file = try FileDescriptor.open(path, .readOnly)
        try await body(ContentSource(descriptor: file, size: Int64(count), confirm: confirm, progress: progress))
    }

    @Test func sendsContentAndSaysHowFar() async throws {
        let sent = Mutex<Int64>(0)
        try await withServer { server, transport in
            try await withSource(1_000_000, progress: { count in sent.withLock { $0 += count } }) { source in
                var request = HTTPRequest("PUT", try server.at("/echo/put"))
                request.body = .content(source)
                let first = try await transport.send(request)
                var bytes = request
                bytes.body = .bytes(Array(servedContent.prefix(1_000_000)))
                let second = try await transport.send(bytes)
                #expect(first.text.contains("digest"))
                #expect(try digest(first) == digest(second))
                var part = request
                part.body = .content(source, 1000..<2000)
                #expect(try await Echo(transport.send(part)).fields["content-length"] == "1000")
            }
        }
        #expect(sent.withLock { $0 } == 1_001_000)
    }

    private func digest(_ response: HTTPResponse) throws -> String {
        struct Digest: Decodable { var digest: String }
        return try JSONDecoder().decode(Digest.self, from: Data(response.body)).digest
    }

    @Test func aFileWrittenMeanwhileNeverArrivesWhole() async throws {
        try await withServer { server, transport in
            let confirm: @Sendable () throws -> Void = { throw FileProviderError(.userCancelled, "written meanwhile") }
            try await withSource(600_000, confirm: confirm) { source in
                var request = HTTPRequest("PUT", try server.at("/echo/broken"))
                request.body = .content(source)
                let outgoing = request
                let error = await failure { _ = try await transport.send(outgoing) }
                #expect(error?.message == "written meanwhile")
            }
            let isSeen = await eventually {
                (try? await server.log().entries(below: "/echo/broken").count) == 1
            }
            #expect(isSeen)
            let entry = try #require(try await server.log().entries(below: "/echo/broken").first)
            #expect(!entry.whole && entry.length < 600_000)
        }
    }

    private final class Waits: Sendable {
        let all = Mutex<[Bool]>([])
    }

    @Test("HTTP-1: a server has time to store large content before it responds, and the call is not watched meanwhile")
    func storingIsNoStall() async throws {
        let waits = Waits()
        let context = CallContext(
            urgency: CallUrgency(true), wait: { isWaiting in waits.all.withLock { $0.append(isWaiting) } })
        try await withServer({ _, configuration in
            configuration.stallTimeout = .seconds(2)
            configuration.storageRate = 25_000
        }) { server, transport in
            try await withSource(500_000) { source in
                var request = HTTPRequest("PUT", try server.at("/think?seconds=5"))
                request.body = .content(source)
                let large = request
                let status = try await CallContext.$current.withValue(context) {
                    try await transport.send(large).status
                }
                #expect(status == 200)
                request.url = try server.at("/think?seconds=20")
                request.body = .content(source, 0..<20_000)
                let small = request
                #expect(await failureCode { _ = try await transport.send(small) } == .timedOut)
            }
        }
        let seen = waits.all.withLock { $0 }
        #expect(seen == [true, false])
    }

    private enum Event: Equatable {
        case begins, answered, ends
    }

    private final class Events: Sendable {
        let all = Mutex<[Event]>([])
        func note(_ event: Event) { all.withLock { $0.append(event) } }
    }

    @Test("HTTP-1: a server may move much before it responds, and the call is not watched until the response has ended")
    func movingIsNoStall() async throws {
        let events = Events()
        let context = CallContext(
            urgency: CallUrgency(true), wait: { events.note($0 ? .begins : .ends) },
            answered: { events.note(.answered) })
        try await withServer({ _, configuration in
            configuration.stallTimeout = .seconds(1)
            configuration.longTimeout = .seconds(6)
        }) { server, transport in
            // The first thinks, the second responds at once, and ends its response later. The last takes too long.
            for page in ["think?seconds=3", "stall?seconds=3", "think?seconds=60"] {
                var request = HTTPRequest("MOVE", try server.at("/" + page))
                request.isLong = true
                let move = request
                let error = await CallContext.$current.withValue(context) {
                    await failureCode { _ = try await transport.send(move) }
                }
                let expected: FileProviderError.Code? = page.hasSuffix("60") ? .timedOut : nil
                #expect(error == expected)
            }
        }
        let seen = events.all.withLock { $0 }
        #expect(seen == [.begins, .answered, .ends, .begins, .answered, .ends, .begins, .ends])
    }

    @Test("HTTP-1: a connection on which nothing moves is probed, so that it breaks when the server's host is gone")
    func keepsAlive() async throws {
        try await withServer { server, transport in
            let url = try server.at("/think?seconds=3")
            async let status = transport.send(HTTPRequest("GET", url)).status
            // Fields of proc_net_tcp: the remote address, and 02 for the timer of the probes.
            let remote = ":" + String(server.base.port, radix: 16, uppercase: true)
            let isProbed = try await eventually(within: .seconds(3)) {
                // It has to be read to its end: a read returns a part of it.
                let connections = try await Command.run("cat", "/proc/net/tcp").output.split(separator: "\n")
                return connections.contains { line in
                    let fields = line.split(separator: " ")
                    return fields.count > 5 && fields[2].hasSuffix(remote) && fields[5].hasPrefix("02:")
                }
            }
            #expect(isProbed)
            let code = try await status
            #expect(code == 200)
        }
    }

    @Test func anEarlyRefusalIsRead() async throws {
        try await withServer { server, transport in
            try await withSource(1_000_000) { source in
                var request = HTTPRequest("PUT", try server.at("/put?early=412"), fields: ["If-None-Match": "*"])
                request.body = .content(source)
                let outgoing = request
                let seen = await eventually {
                    (try? await transport.send(outgoing).status) == 412
                }
                #expect(seen)
            }
        }
    }
}
