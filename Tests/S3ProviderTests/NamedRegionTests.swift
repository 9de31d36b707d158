import Testing

@testable import HTTPTransport
@testable import S3Provider

@Suite struct NamedRegionTests {
    @Test(
        "S3-17: a region that the server names is used only if it can be one",
        arguments: [
            ("eu-central-1", true), ("", false), ("eu.example.org/", false), ("a\r\nHost: b", false),
            ("eu-central-1@example.org", false), (String(repeating: "a", count: 65), false),
        ])
    func region(named: String, isUsed: Bool) throws {
        let url = try #require(HTTPURL("http://127.0.0.1/bucket"))
        let head = HTTPResponseHead(status: 301, fields: ["x-amz-bucket-region": named], url: url)
        let failure = S3Failure(HTTPResponse(head: head, body: []), bucket: "bucket")
        #expect(failure.rightRegion == (isUsed ? named : nil))
    }
}
