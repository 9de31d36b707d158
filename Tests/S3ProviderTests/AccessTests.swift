import FileProvider
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server)) struct AccessTests {
    private func tryOut(
        _ source: String, _ environment: [String: String], profile: String? = nil
    ) async throws -> FileProviderError? {
        let store = try await ObjectStore.shared(.swift)
        var options = store.options()
        options.profile = profile
        let wanted = options
        return await failure {
            try await S3ProviderFactory.tryOut(source, wanted, environment: environment, logger: Logger(label: "test"))
        }
    }

    @Test func saysWhatIsWrong() async throws {
        try await withBucket { bucket, _ in
            let source = bucket.domain.source
            #expect(try await tryOut(source, ObjectStore.environment) == nil)
            var wrong = ObjectStore.environment
            wrong["AWS_SECRET_ACCESS_KEY"] = "a wrong secret"
            let refused = try await tryOut(source, wrong)
            #expect(refused?.code == .notAuthenticated)
            #expect(refused?.message.contains("secret key is not") == true)
            #expect(refused?.message.contains("wrong secret") == false)
            wrong["AWS_ACCESS_KEY_ID"] = "nobody:nobody"
            #expect(try await tryOut(source, wrong)?.code == .notAuthenticated)
            let stranger = [
                "AWS_ACCESS_KEY_ID": "test:stranger", "AWS_SECRET_ACCESS_KEY": "stranger", "HOME": "/nowhere",
            ]
            let forbidden = try await tryOut(source, stranger)
            #expect(forbidden?.code == .fileReadNoPermission)
            #expect(forbidden?.message.contains(bucket.name) == true)
            let missing = try await tryOut("s3://no-such-bucket-at-all", ObjectStore.environment)
            #expect(missing?.message.contains("no bucket 'no-such-bucket-at-all'") == true)
            let nothing = try await tryOut(source, ["HOME": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true"])
            #expect(nothing?.code == .notAuthenticated)
            #expect(nothing?.message.contains("AWS_ACCESS_KEY_ID") == true)
            let noProfile = try await tryOut(source, ObjectStore.environment, profile: "unknown")
            #expect(noProfile?.message.contains("'unknown'") == true)
        }
    }

    @Test func credentialsComeFromFiles() async throws {
        try await withBucket { bucket, _ in
            let home = try TemporaryDirectory()
            defer { home.remove() }
            _ = try home.makeDirectory(".aws")
            let secrets = """
                # comment
                [default]
                aws_access_key_id = nobody
                aws_secret_access_key = nothing
                [work]
                aws_access_key_id=test:tester
                aws_secret_access_key =  testing
                """
            _ = try home.makeFile(".aws/credentials", Array(secrets.utf8))
            let config = "[profile work]\nregion = us-east-1\ns3 =\n  addressing_style = path\n"
            _ = try home.makeFile(".aws/config", Array(config.utf8))
            let environment = ["HOME": home.path.string]
            #expect(try await tryOut(bucket.domain.source, environment, profile: "work") == nil)
            #expect(try await tryOut(bucket.domain.source, environment.merging(["AWS_PROFILE": "work"]) { $1 }) == nil)
            #expect(try await tryOut(bucket.domain.source, environment)?.code == .notAuthenticated)
            let profile = AWSProfile(named: "work", environment: environment)
            #expect(profile.settings["s3.addressing_style"] == "path" && profile.settings["region"] == "us-east-1")
        }
    }

    @Test func credentialsComeFromAContainersAddress() async throws {
        try await withBucket { bucket, _ in
            let scratch = try TemporaryDirectory()
            defer { scratch.remove() }
            let program = """
                import http.server, os, sys
                class H(http.server.BaseHTTPRequestHandler):
                    def do_GET(self):
                        good = self.headers.get("Authorization") == "the token"
                        body = b'{"AccessKeyId":"test:tester","SecretAccessKey":"testing","Expiration":"2099-01-01T00:00:00Z"}'
                        self.send_response(200 if good else 403)
                        self.send_header("Content-Length", str(len(body)))
                        self.end_headers()
                        self.wfile.write(body)
                s = http.server.HTTPServer(("127.0.0.1", 0), H)
                open(sys.argv[1] + "x", "w").write(str(s.server_address[1]))
                os.rename(sys.argv[1] + "x", sys.argv[1])
                s.serve_forever()
                """
            let (server, port) = try await BackgroundProgram.start(
                ["python3", "-c", program, scratch["port"].string], until: scratch["port"])
            defer { server.kill() }
            var environment = [
                "HOME": "/nowhere", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:\(port)/role",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the token",
            ]
            #expect(try await tryOut(bucket.domain.source, environment) == nil)
            // The first request waits for the credentials, and so do all others.
            var configuration = HTTPTransport.Configuration()
            configuration.connections = 1
            configuration.environment = [:]
            let variables = environment
            let client = S3Client(
                bucket.client.location, isRegionKnown: true, profile: nil, environment: { variables },
                transport: HTTPTransport(configuration, logger: Logger(label: "test")), logger: Logger(label: "test"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { _ = try await client.list(prefix: "", isFlat: true) } }
                try await group.waitForAll()
            }
            await client.transport.close()
            environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "another"
            #expect(try await tryOut(bucket.domain.source, environment)?.code == .notAuthenticated)
            environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.org/role"
            #expect(try await tryOut(bucket.domain.source, environment)?.code == .notAuthenticated)
        }
    }

    @Test(arguments: [-3600, 3600] as [Int64])
    func aWrongClockIsPutRight(skew: Int64) async throws {
        try await withBucket { bucket, _ in
            let client = S3Client(
                bucket.client.location, isRegionKnown: true, profile: nil, environment: { ObjectStore.environment },
                transport: bucket.client.transport, logger: Logger(label: "test"), skew: skew)
            _ = try await client.list(prefix: "", isFlat: true)
        }
    }

    @Test func addressesAreBuiltAsServersWantThem() throws {
        let amazon = try S3Location(source: "s3://my-bucket/some/prefix/", region: "eu-west-1")
        #expect(amazon.prefix == "some/prefix/")
        #expect(amazon.url(of: "a b/ü").description == "https://my-bucket.s3.eu-west-1.amazonaws.com/a%20b/%C3%BC")
        #expect(amazon.url(of: nil, query: [("b", "x/y"), ("a", "")]).target == "/?a=&b=x%2Fy")
        let dotted = try S3Location(source: "s3://my.bucket", region: "eu-west-1")
        #expect(dotted.url(of: "k").description == "https://s3.eu-west-1.amazonaws.com/my.bucket/k")
        let own = try S3Location(source: "s3://bucket", endpoint: "http://127.0.0.1:9000/base/")
        #expect(own.url(of: "k").description == "http://127.0.0.1:9000/base/bucket/k")
        #expect(own.url(of: nil).target == "/base/bucket")
        let named = try S3Location(source: "s3://bucket", endpoint: "store.example.org", usesHostNames: true)
        #expect(named.url(of: "k").description == "https://bucket.store.example.org/k")
        for wrong in ["s3://", "s3:///x", "s3://a b", "s3://b/../x", "http://x"] {
            #expect(throws: FileProviderError.self) { try S3Location(source: wrong) }
        }
    }
}
