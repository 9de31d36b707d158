import FileProvider
import Foundation
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import HTTPTransport

@Suite(.tags(.server, .timing)) struct HTTPTransportTests {
    @Test func sendsAddressFieldsAndBodyAsTheyAre() async throws {
        try await withServer { server, transport in
            let target = "/echo/a//b/../%2F%C3%A4/?list-type=2&prefix=a%20b%2Fc&x"
            var request = HTTPRequest("PUT", try server.at(target), fields: ["X-One": "1"])
            request.body = .bytes(Array("hello".utf8))
            let echo = try Echo(await transport.send(request))
            #expect(echo.method == "PUT")
            #expect(echo.path == target)
            #expect(echo.fields["x-one"] == "1")
            #expect(echo.fields["content-length"] == "5")
            #expect(echo.fields["host"] == server.base.authority)
            #expect(echo.fields["user-agent"] == "yonder")
        }
    }

    @Test func keepsConnectionsAndHasNoMoreThanAllowed() async throws {
        try await withServer({ $1.connections = 3 }) { server, transport in
            let url = try server.at("/think?seconds=0.02")
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<30 { group.addTask { try await transport.send(HTTPRequest("GET", url)).status } }
                for try await status in group { #expect(status == 200) }
            }
            // The log's own connection is one more.
            let log = try await server.log()
            #expect(log.entries(below: "/think").count == 30)
            #expect(log.most <= 4)
        }
    }

    @Test func waitsWhereTheServerSaysNotNow() async throws {
        try await withServer { server, transport in
            let answer = try await transport.send(
                HTTPRequest("POST", server.at("/status/a?status=503&times=2&after=0")))
            #expect(answer.status == 200)
            let limited = try await transport.send(HTTPRequest("GET", server.at("/status/b?status=429&after=3000")))
            #expect(limited.status == 429)
            let log = try await server.log()
            #expect(log.entries(below: "/status/a").count == 3)
            #expect(log.entries(below: "/status/b").count == 1)
        }
    }

    @Test("PATH-20: an answer is progress of the call, and a request to come again later is not")
    func answersAreProgress() async throws {
        try await withServer { server, transport in
            let answers = Atomic<Int>(0)
            let context = CallContext(
                urgency: CallUrgency(true), wait: { _ in }, answered: { answers.add(1, ordering: .relaxed) })
            try await CallContext.$current.withValue(context) {
                _ = try await transport.send(HTTPRequest("GET", server.at("/status/a?status=503&times=2&after=0")))
                #expect(answers.load(ordering: .relaxed) == 1)
                for _ in 0..<2 { _ = try await transport.send(HTTPRequest("GET", server.at("/status/b?status=404"))) }
            }
            #expect(answers.load(ordering: .relaxed) == 3)
        }
    }

    @Test func givesOtherStatusesToTheCaller() async throws {
        try await withServer { server, transport in
            for status in [204, 404, 412, 500] {
                let answer = try await transport.send(
                    HTTPRequest("GET", server.at("/status/\(status)?status=\(status)")))
                #expect(answer.status == status)
            }
        }
    }

    @Test func makesAgainOnlyWhatIsHarmless() async throws {
        try await withServer { server, transport in
            #expect(try await transport.send(HTTPRequest("GET", server.at("/cut/a?times=2"))).status == 200)
            let url = try server.at("/cut/b?times=2")
            #expect(await failureCode { _ = try await transport.send(HTTPRequest("MOVE", url)) } == .serverUnreachable)
            let conditional = HTTPRequest("PUT", try server.at("/cut/c?times=2"), fields: ["If-None-Match": "*"])
            #expect(await failureCode { _ = try await transport.send(conditional) } == .serverUnreachable)
            let log = try await server.log()
            #expect(log.entries(below: "/cut/a").count == 3)
            #expect(log.entries(below: "/cut/b").count == 1)
            #expect(log.entries(below: "/cut/c").count == 1)
        }
    }

    @Test("HTTP-1: an idempotent request is repeated where what arrives is no response, as the rest of an earlier one")
    func repeatsAfterStrayBytes() async throws {
        try await withServer { server, transport in
            #expect(try await transport.send(HTTPRequest("GET", server.at("/nonsense/a?times=2"))).status == 200)
            let url = try server.at("/nonsense/b?times=2")
            #expect(await failureCode { _ = try await transport.send(HTTPRequest("MOVE", url)) } == .malformedResponse)
            let always = try server.at("/nonsense/c")
            let failed = await failure { _ = try await transport.send(HTTPRequest("GET", always)) }
            #expect(failed?.code == .malformedResponse && failed?.message.contains("does not speak HTTP") == true)
            let log = try await server.log()
            #expect(log.entries(below: "/nonsense/a").count == 3)
            #expect(log.entries(below: "/nonsense/b").count == 1)
            #expect(log.entries(below: "/nonsense/c").count == transport.configuration.retries.attempts)
        }
    }

    @Test("HTTP-1: before each repetition it is looked again, and what the look throws ends the request")
    func looksBeforeEachRepetition() async throws {
        struct Changed: Error {}
        try await withServer { server, transport in
            for path in ["/status/look?status=503&after=0&times=2", "/cut/look?times=2"] {
                let looks = Atomic<Int>(0)
                var request = HTTPRequest("PUT", try server.at(path), body: .bytes([1]))
                request.beforeRepetition = { looks.add(1, ordering: .relaxed) }
                #expect(try await transport.send(request).status == 200)
                #expect(looks.load(ordering: .relaxed) == 2)
            }
            for path in ["/status/changed?status=503&after=0&times=2", "/cut/changed?times=2"] {
                var request = HTTPRequest("PUT", try server.at(path), body: .bytes([1]))
                request.beforeRepetition = { throw Changed() }
                let unsent = request
                await #expect(throws: Changed.self) { _ = try await transport.send(unsent) }
            }
            let log = try await server.log()
            #expect(log.entries(below: "/status/changed").count == 1 && log.entries(below: "/cut/changed").count == 1)
        }
    }

    @Test func saysWhoCannotBeReachedAtOnce() async throws {
        let server = try await TestServer()
        let url = server.base
        server.stop()
        let transport = makeTransport()
        let start = ContinuousClock.now
        let refused = await eventually {
            await failure { _ = try await transport.send(HTTPRequest("GET", url)) }?.message.contains("refused") == true
        }
        #expect(refused)
        let unknown = HTTPURL(isSecure: false, host: "no-such-host.invalid")
        let lost = await failure { _ = try await transport.send(HTTPRequest("GET", unknown)) }
        #expect(lost?.code == .serverUnreachable)
        #expect(lost?.message.contains("no-such-host.invalid") == true)
        #expect(ContinuousClock.now - start < .seconds(8))
        await transport.close()
    }

    @Test func givesUpOnlyWhatDoesNotMove() async throws {
        try await withServer({ $1.stallTimeout = .milliseconds(600) }) { server, transport in
            // Takes much longer than the limit, but moves.
            let dripped = try await transport.send(HTTPRequest("GET", server.at("/drip?count=12&pause=0.15")))
            #expect(dripped.body.count == 12)
            let stall = try server.at("/stall")
            #expect(await failureCode { _ = try await transport.send(HTTPRequest("GET", stall)) } == .timedOut)
            let think = try server.at("/think?seconds=20")
            #expect(await failureCode { _ = try await transport.send(HTTPRequest("GET", think)) } == .timedOut)
            var patient = HTTPRequest("GET", try server.at("/think?seconds=1.2"))
            patient.patience = .seconds(20)
            #expect(try await transport.send(patient).status == 200)
        }
    }

    @Test func aSlowReceiverIsNoStall() async throws {
        try await withServer({ $1.stallTimeout = .milliseconds(400) }) { server, transport in
            let count = try await transport.exchange(HTTPRequest("GET", server.at("/file"))) { _, body in
                var count = 0
                while let piece = try await body.next() {
                    if count == 0 { try await body.locally { Thread.sleep(forTimeInterval: 1) } }
                    count += piece.readableBytes
                }
                return count
            }
            #expect(count == servedContent.count)
        }
    }

    @Test func cancellingEndsARequestAtOnce() async throws {
        try await withServer { server, transport in
            let url = try server.at("/think?seconds=30")
            let task = Task { await failure { _ = try await transport.send(HTTPRequest("GET", url)) } }
            try await Task.sleep(for: .milliseconds(300))
            let start = ContinuousClock.now
            task.cancel()
            #expect(await task.value?.code == .userCancelled)
            #expect(ContinuousClock.now - start < .seconds(1))
        }
    }

    @Test func waitingInLineCanBeCancelled() async throws {
        try await withServer({ $1.connections = 1 }) { server, transport in
            let url = try server.at("/think?seconds=3")
            let first = Task { try await transport.send(HTTPRequest("GET", url)).status }
            try await Task.sleep(for: .milliseconds(200))
            let second = Task { await failure { _ = try await transport.send(HTTPRequest("GET", url)) } }
            try await Task.sleep(for: .milliseconds(100))
            second.cancel()
            #expect(await second.value?.code == .userCancelled)
            #expect(try await first.value == 200)
            #expect(try await transport.send(HTTPRequest("GET", server.at("/echo"))).status == 200)
        }
    }

    @Test func nonsenseIsNamedNonsense() async throws {
        try await withServer { server, transport in
            let error = await failure { _ = try await transport.send(HTTPRequest("GET", server.at("/nonsense"))) }
            #expect(error?.code == .malformedResponse || error?.code == .serverUnreachable)
            let big = try server.at("/file")
            let tooMuch = await failure { _ = try await transport.send(HTTPRequest("GET", big), bodyLimit: 1000) }
            #expect(tooMuch?.code == .malformedResponse)
        }
    }

    @Test func verifiesCertificates() async throws {
        try await withServer(isSecure: true, { $1.environment["SSL_CERT_FILE"] = $0.certificate }) {
            server, transport in
            #expect(try await transport.send(HTTPRequest("GET", server.at("/echo"))).status == 200)
            let stranger = makeTransport()
            let url = try server.at("/echo")
            let error = await failure { _ = try await stranger.send(HTTPRequest("GET", url)) }
            await stranger.close()
            #expect(error?.code == .serverUnreachable)
            #expect(error?.message.contains("certificate") == true)
            // The right certificate of another host.
            let other = HTTPURL(isSecure: true, host: "127.0.0.1", port: url.port)
            #expect(await failureCode { _ = try await transport.send(HTTPRequest("GET", other)) } == .serverUnreachable)
        }
    }
}
