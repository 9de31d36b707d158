import FileProvider
import FileProviderTesting
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.server)) struct DownloadTests {
    private func download(_ url: HTTPURL, range: Range<Int64>? = nil, size: Int64? = nil) -> HTTPDownload {
        HTTPDownload(HTTPRequest("GET", url), range: range, size: size) {
            FileProviderError(.malformedResponse, "status \($0.status)")
        }
    }

    @Test(arguments: ["/file", "/file?short=300000"])
    func givesAllOfAFile(target: String) async throws {
        try await withServer { server, transport in
            let sink = CollectingSink()
            let size = Int64(servedContent.count)
            let head = try await transport.download(download(server.at(target), size: size), into: sink)
            #expect(try sink.bytes(in: 0..<size) == servedContent)
            #expect(head.fields["ETag"] == "\"one\"")
        }
    }

    @Test(
        arguments: [
            "/file", "/file?whole", "/file?cut=50000", "/file?whole&cut=250000&times=1", "/file?more=7",
            "/file?more=7&cut=50000", "/file?star",
        ])
    func givesExactlyARange(target: String) async throws {
        try await withServer { server, transport in
            let sink = CollectingSink()
            let range: Range<Int64> = 100_000..<400_001
            _ = try await transport.download(download(server.at(target), range: range), into: sink)
            #expect(sink.count == range.count)
            #expect(try sink.bytes(in: range) == Array(servedContent[100_000..<400_001]))
        }
    }

    @Test(arguments: ["/file?cut=100000", "/file?cut=100000&settles", "/file?cut=100000&star"])
    func goesOnWhereItBroke(target: String) async throws {
        try await withServer { server, transport in
            let sink = CollectingSink()
            _ = try await transport.download(download(server.at(target)), into: sink)
            #expect(try sink.bytes(in: 0..<Int64(servedContent.count)) == servedContent)
            #expect(try await server.log().entries(below: "/file").count >= 10)
        }
    }

    @Test(
        "HTTP-3: a server that gives a few bytes in each answer is given up, whatever ends its answers",
        arguments: ["/file?short=1", "/file?short=100", "/file?cut=1"])
    func givesUpWhatHardlyMoves(target: String) async throws {
        try await withServer({ $1.retries.firstPause = .milliseconds(1) }) { server, transport in
            let url = try server.at(target)
            let error = await failure {
                _ = try await transport.download(download(url), into: CollectingSink())
            }
            #expect(error?.code == .malformedResponse, "\(String(describing: error))")
            #expect(try await server.log().entries(below: "/file").count == 64)
        }
    }

    @Test("A short file may come byte by byte") func takesLittleOfAShortFile() async throws {
        try await withServer { server, transport in
            let sink = CollectingSink()
            _ = try await transport.download(download(server.at("/file?short=1"), range: 5..<55), into: sink)
            #expect(try sink.bytes(in: 5..<55) == Array(servedContent[5..<55]))
        }
    }

    @Test("HTTP-2: a part that does not say how much there is, is not taken for all")
    func partOfAnUnknownWhole() async throws {
        try await withServer { server, transport in
            let url = try server.at("/file?short=300000&star")
            let error = await failure {
                _ = try await transport.download(download(url), into: CollectingSink())
            }
            #expect(error?.code == .malformedResponse)
            let sink = CollectingSink()
            let size = Int64(servedContent.count)
            _ = try await transport.download(download(url, size: size), into: sink)
            #expect(try sink.bytes(in: 0..<size) == servedContent)
        }
    }

    @Test(arguments: ["/file?shift=5", "/file?gzip"])
    func refusesWhatIsNotTheRange(target: String) async throws {
        try await withServer { server, transport in
            let url = try server.at(target)
            let error = await failure {
                _ = try await transport.download(download(url, range: 10..<20), into: CollectingSink())
            }
            #expect(error?.code == .malformedResponse)
        }
    }

    @Test func refusesAnotherSizeThanWasSaid() async throws {
        try await withServer { server, transport in
            let url = try server.at("/file")
            for wrong in [Int64(servedContent.count) + 1, 17] {
                let error = await failure {
                    _ = try await transport.download(download(url, size: wrong), into: CollectingSink())
                }
                #expect(error?.code == .malformedResponse)
            }
        }
    }

    @Test func neverMixesTwoVersions() async throws {
        try await withServer { server, transport in
            let url = try server.at("/file?cut=100000&changes")
            let error = await failure { _ = try await transport.download(download(url), into: CollectingSink()) }
            #expect(error?.code == .versionNoLongerAvailable)
        }
    }

    @Test func errorsOfTheSinkAreThrown() async throws {
        try await withServer { server, transport in
            let sink = CollectingSink { throw FileProviderError(.posix, "full", errno: .noSpace) }
            let error = await failure { _ = try await transport.download(download(server.at("/file")), into: sink) }
            #expect(error?.errno == .noSpace)
        }
    }

    @Test("HTTP-9: an error is known by its status, however long the page is that comes with it")
    func errorPagesMayBeLong() async throws {
        try await withServer { server, transport in
            let url = try server.at("/status?status=404&length=1000000")
            let missing = await failure {
                _ = try await transport.download(
                    HTTPDownload(HTTPRequest("GET", url)) { FileProviderError(.noSuchItem, "\($0.body.count)") },
                    into: CollectingSink())
            }
            #expect(missing?.code == .noSuchItem && missing?.message == "\(64 << 10)")
            let unlisted = await failure {
                _ = try await transport.sendForXML(
                    HTTPRequest("PROPFIND", url), isWanted: { $0.status == 207 }, take: { _ in },
                    failure: { FileProviderError(.noSuchItem, "\($0.body.count)") })
            }
            #expect(unlisted?.code == .noSuchItem && unlisted?.message == "\(64 << 10)")
        }
    }
}
