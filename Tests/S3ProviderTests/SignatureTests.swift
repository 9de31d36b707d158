import HTTPTransport
import Testing

@testable import S3Provider

/// Amazon's own examples ("Examples: Signature Calculations in AWS Signature Version 4").
@Suite struct SignatureTests {
    private let credentials = S3Credentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    private func signature(
        _ method: String, _ target: String, _ fields: HTTPFields = [:], payloadHash: String = SignatureTests.empty
    ) throws -> String? {
        let url = try #require(HTTPURL("https://examplebucket.s3.amazonaws.com\(target)"))
        var request = HTTPRequest(method, url, fields: fields)
        // 20130524T000000Z
        Signature(region: "us-east-1", credentials: credentials, time: 1_369_353_600).sign(
            &request, payloadHash: payloadHash)
        return request.fields["Authorization"]
    }

    @Test func getObject() throws {
        let authorization = try signature("GET", "/test.txt", ["Range": "bytes=0-9"])
        #expect(
            authorization
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
                + "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    }

    @Test func putObject() throws {
        let fields: HTTPFields = [
            "Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY",
        ]
        let hash = Signature.hash(Array("Welcome to Amazon S3.".utf8))
        #expect(hash == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
        let authorization = try signature("PUT", "/test%24file.text", fields, payloadHash: hash)
        #expect(
            authorization?.hasSuffix("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
                == true)
    }

    @Test func getBucketLifecycle() throws {
        let authorization = try signature("GET", "/?lifecycle")
        #expect(
            authorization?.hasSuffix("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
                == true)
    }

    @Test func listObjects() throws {
        let authorization = try signature("GET", "/?max-keys=2&prefix=J")
        #expect(
            authorization?.hasSuffix("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
                == true)
    }

    @Test func secretsAreNeverPrinted() {
        let text = "\(credentials) \(String(reflecting: credentials)) \([credentials])"
        #expect(!text.contains("wJalr") && !text.contains("AKIA"))
        var dumped = ""
        dump(credentials, to: &dumped)
        #expect(!dumped.contains("wJalr"))
    }
}
