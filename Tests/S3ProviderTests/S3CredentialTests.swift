import FileProvider
import Foundation
import HTTPTransport
import InMemoryLogging
import Logging
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// The places in which credentials are found, each against a server that plays its part.
@Suite(.tags(.server)) struct S3CredentialTests {
    private static let keys = """
        [keys]
        aws_access_key_id = \(ObjectStoreProgram.accessKey)
        aws_secret_access_key = \(ObjectStoreProgram.secretKey)

        """

    /// The profile of a session of single sign-on.
    private static let session = """
        [profile new]
        sso_session = company
        sso_account_id = 123456789012
        sso_role_name = the role
        [sso-session company]
        sso_region = us-east-1
        sso_start_url = https://example.org/start

        """

    @Test("S3-19: a role is assumed with the keys of another profile, also through a chain") func roles() async throws {
        try await CredentialServer.run { server in
            try server.write(Self.keys, to: ".aws/credentials")
            try server.configure(
                """
                [profile first]
                role_arn = arn:aws:iam::1:role/first
                source_profile = keys
                external_id = outside
                [profile second]
                role_arn = arn:aws:iam::1:role/second
                role_session_name = me
                source_profile = first
                [profile round]
                role_arn = arn:aws:iam::1:role/round
                source_profile = trip
                [profile trip]
                role_arn = arn:aws:iam::1:role/trip
                source_profile = round
                [profile code]
                role_arn = arn:aws:iam::1:role/code
                source_profile = keys
                mfa_serial = arn:aws:iam::1:mfa/me
                [profile lost]
                role_arn = arn:aws:iam::1:role/lost
                source_profile = nowhere
                """)
            #expect(CredentialServer.isSession(try await server.find(server.environment(), profile: "second")))
            #expect(
                server.log == [
                    "AssumeRole arn:aws:iam::1:role/first yonder", "AssumeRole arn:aws:iam::1:role/second me",
                ])
            #expect(await server.refusal(server.environment(), profile: "round").contains("name each other"))
            #expect(await server.refusal(server.environment(), profile: "code").contains("mfa_serial"))
            #expect(await server.refusal(server.environment(), profile: "lost").contains("'nowhere'"))
            try server.write(Self.keys.replacing("testing", with: "wrong"), to: ".aws/credentials")
            let refused = await server.refusal(server.environment(), profile: "first")
            #expect(refused == "STS gives no credentials (AccessDenied, status 403)")
        }
    }

    @Test("S3-19: a web identity gives the credentials of its role, and the token is read each time")
    func webIdentity() async throws {
        try await CredentialServer.run { server in
            try server.write("the/identity==\n", to: "token")
            let variables = [
                "AWS_WEB_IDENTITY_TOKEN_FILE": server.scratch["token"].string,
                "AWS_ROLE_ARN": "arn:aws:iam::1:role/web", "AWS_ROLE_SESSION_NAME": "pod",
            ]
            #expect(CredentialServer.isSession(try await server.find(server.environment(variables))))
            #expect(server.log == ["AssumeRoleWithWebIdentity arn:aws:iam::1:role/web pod"])
            try server.write("another", to: "token")
            #expect(await server.refusal(server.environment(variables)).contains("AccessDenied"))
            var incomplete = variables
            incomplete["AWS_ROLE_ARN"] = nil
            #expect(await server.refusal(server.environment(incomplete)).contains("AWS_ROLE_ARN is not"))
            let file = variables["AWS_WEB_IDENTITY_TOKEN_FILE"] ?? ""
            try server.write("the/identity==", to: "token")
            try server.configure(
                "[profile web]\nrole_arn = arn:aws:iam::1:role/web\nweb_identity_token_file = \(file)\n")
            #expect(CredentialServer.isSession(try await server.find(server.environment(), profile: "web")))
        }
    }

    @Test("S3-20: the token of `aws sso login` gives the credentials of a role, and an expired one is explained")
    func singleSignOn() async throws {
        try await CredentialServer.run { server in
            try server.configure(
                Self.session + """
                    [profile old]
                    sso_region = us-east-1
                    sso_start_url = https://example.org/start
                    sso_account_id = 123456789012
                    sso_role_name = the role
                    [profile half]
                    sso_session = none
                    sso_account_id = 123456789012
                    sso_role_name = the role
                    """)
            // The file is named after the SHA-1 of these.
            for (profile, name) in [("new", "company"), ("old", "https://example.org/start")] {
                let sum = try await Command.shell("printf %s \"$1\" | sha1sum | cut -c1-40", name).line
                let path = ".aws/sso/cache/\(sum).json"
                let missing = await server.refusal(server.environment(), profile: profile)
                #expect(missing.contains("aws sso login --profile \(profile)"))
                try server.write(#"{"accessToken": "bearer", "expiresAt": "2099-01-01T00:00:00Z"}"#, to: path)
                #expect(CredentialServer.isSession(try await server.find(server.environment(), profile: profile)))
                try server.write(#"{"accessToken": "wrong", "expiresAt": "2099-01-01T00:00:00Z"}"#, to: path)
                #expect(await server.refusal(server.environment(), profile: profile).contains("SSO refuses the token"))
                try server.write(#"{"accessToken": "bearer", "expiresAt": "2020-01-01T00:00:00UTC"}"#, to: path)
                let expired = await server.refusal(server.environment(), profile: profile)
                #expect(expired.contains("has expired") && expired.contains("aws sso login --profile \(profile)"))
                try server.write("garbage", to: path)
                #expect(await server.refusal(server.environment(), profile: profile).contains("aws sso login"))
            }
            #expect(await server.refusal(server.environment(), profile: "half").contains("aws configure sso"))
        }
    }

    @Test("S3-20: a token of a session that expires soon is renewed and stored for its owner alone")
    func tokenRenewal() async throws {
        try await CredentialServer.run { server in
            try server.configure(Self.session)
            let sum = try await Command.shell("printf company | sha1sum | cut -c1-40").line
            let path = ".aws/sso/cache/\(sum).json"
            func store(_ token: String, endsIn seconds: Int64, refresh: String, clientEndsIn: Int64 = 3600) throws {
                try server.write(
                    """
                    {"accessToken": "\(token)", "expiresAt": "\(HTTPDate.iso8601(FileTimestamp.now.seconds + seconds))",
                     "clientId": "client", "clientSecret": "client secret", "refreshToken": "\(refresh)",
                     "registrationExpiresAt": "\(HTTPDate.iso8601(FileTimestamp.now.seconds + clientEndsIn))", "startUrl": "kept"}
                    """, to: path)
            }
            func find() async throws -> S3Credentials { try await server.find(server.environment(), profile: "new") }

            // The token is wrong, so that the credentials can only be those of the renewed one.
            for seconds: Int64 in [600, -60] {
                try store("wrong", endsIn: seconds, refresh: "refresh")
                #expect(CredentialServer.isSession(try await find()))
            }
            #expect(server.log.filter { $0 == "POST /token" }.count == 2)
            let stored = try #require(SingleSignOnToken(at: server.scratch[path]))
            #expect(stored.accessToken == "bearer" && stored.expiration > FileTimestamp.now.seconds + 3000)
            let text = try String(contentsOfFile: server.scratch[path].string, encoding: .utf8)
            #expect(text.contains("refresh 2") && text.contains("kept") && text.contains("client secret"))
            #expect(try FileStatus(at: server.scratch[path]).permissions == 0o600)
            // It is valid for long.
            #expect(CredentialServer.isSession(try await find()))
            #expect(server.log.filter { $0 == "POST /token" }.count == 2)

            // A refused renewal does no harm to a valid token, and an expired one needs the user.
            try store("bearer", endsIn: 600, refresh: "wrong")
            #expect(CredentialServer.isSession(try await find()))
            try store("bearer", endsIn: -60, refresh: "wrong")
            #expect(await server.refusal(server.environment(), profile: "new").contains("has expired"))
            try store("bearer", endsIn: -60, refresh: "refresh", clientEndsIn: -60)
            #expect(await server.refusal(server.environment(), profile: "new").contains("has expired"))
            #expect(server.log.filter { $0 == "POST /token" }.count == 4)
        }
    }

    @Test("S3-21: credential_process runs without a shell, and its failure is explained without its output")
    func process() async throws {
        try await CredentialServer.run { server in
            try server.write(
                """
                import sys, time
                case = sys.argv[1]
                if case == "good $HOME":
                    print('{"Version": 1, "AccessKeyId": "test:tester", "SecretAccessKey": "testing",'
                          '"SessionToken": "session", "Expiration": "2099-01-01T00:00:00+00:00"}')
                elif case == "version":
                    print('{"Version": 2, "AccessKeyId": "test:tester", "SecretAccessKey": "testing"}')
                elif case == "garbage":
                    print("the secret")
                elif case == "much":
                    print("x" * 200000)
                elif case == "fails":
                    print("the secret")
                    print("the secret", file=sys.stderr)
                    sys.exit(3)
                elif case == "hangs":
                    time.sleep(60)
                """, to: "a program.py")
            func command(_ word: String) -> String {
                "python3 \"\(server.scratch["a program.py"].string)\" \"\(word)\""
            }
            // A shell would run the second command.
            let byShell = server.scratch["by a shell"].string
            try server.configure(
                """
                [profile process]
                credential_process = \(command("good $HOME")) && touch "\(byShell)"
                [profile fails]
                credential_process = \(command("fails"))
                [profile garbage]
                credential_process = \(command("garbage"))
                """)
            #expect(CredentialServer.isSession(try await server.find(server.environment(), profile: "process")))
            #expect(!FileManager.default.fileExists(atPath: byShell))
            let log = InMemoryLogHandler()
            var logger = Logger(label: "test") { _ in log }
            logger.logLevel = .trace
            for profile in ["fails", "garbage"] {
                let source = server.source(
                    server.environment(), profile: profile, transport: CredentialServer.transport(logger: logger))
                let error = await failure { _ = try await source.credentials(now: FileTimestamp.now.seconds) }
                #expect(error?.code == .notAuthenticated && !"\(error as Any)".contains("the secret"), "\(profile)")
            }
            #expect(!"\(log.entries)".contains("the secret"))
            #expect(CredentialProcess.usualTimeout == .seconds(60))
            let cases = [
                "version": "malformed", "garbage": "malformed", "much": "prints too much",
                "fails": "ends with exit status 3",
                "hangs": "does not end within",
            ]
            for (word, reason) in cases {
                let process = CredentialProcess(
                    command(word), environment: server.environment(), timeout: .seconds(word == "hangs" ? 1 : 30))
                let error = await failure { _ = try await process.credentials() }
                #expect(error?.code == .notAuthenticated && error?.message.contains(reason) == true, "\(word)")
                #expect(error?.message.contains("the secret") == false)
            }
            let missing = CredentialProcess("/no/such/program", environment: server.environment())
            let error = await failure { _ = try await missing.credentials() }
            #expect(error?.message.contains("cannot be started") == true)
            let hanging = CredentialProcess(command("hangs"), environment: server.environment())
            let task = Task { try await hanging.credentials() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(
                CredentialProcess.words(of: #"a  "b c" d\ e "" f\g \"h"#) == ["a", "b c", "d e", "", #"f\g"#, #""h"#])
        }
    }

    @Test("S3-22: an EC2 instance gives the credentials of its role, and another machine does not wait")
    func instance() async throws {
        try await CredentialServer.run { server in
            let on = ["AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.address]
            #expect(CredentialServer.isSession(try await server.find(server.environment(on))))
            let roles = "/latest/meta-data/iam/security-credentials/"
            #expect(server.log == ["PUT /latest/api/token", "GET \(roles)", "GET \(roles)the-role"])
            let off = on.merging(["AWS_EC2_METADATA_DISABLED": "TRUE"]) { $1 }
            #expect(await server.refusal(server.environment(off)).contains("no credentials for S3"))
            #expect(server.log.count == 3)
            try server.setMode("malformed")
            #expect(await server.refusal(server.environment(on)).contains("gives"))
            try server.setMode("silent")
            let start = ContinuousClock.now
            #expect(await server.refusal(server.environment(on)).contains("no credentials for S3"))
            // One second, with time for a busy machine.
            #expect(ContinuousClock.now - start < .seconds(5))
        }
    }

    @Test("S3-24: credentials are renewed before they expire, once for all requests that need them")
    func renewal() async throws {
        try await CredentialServer.run { server in
            try server.setMode("lifetime=1000 number")
            let uri = [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.address + "/role",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the token",
            ]
            let source = server.source(server.environment(uri))
            let now = FileTimestamp.now.seconds
            func all(_ now: Int64) async throws -> Set<S3Credentials> {
                try await withThrowingTaskGroup(of: S3Credentials.self) { group in
                    for _ in 0..<20 { group.addTask { try await source.credentials(now: now) } }
                    return try await group.reduce(into: []) { $0.insert($1) }
                }
            }
            let first = try await all(now)
            #expect(first.count == 1 && server.log.count == 1)
            #expect(try await all(now + 700) == first && server.log.count == 1)
            let start = ContinuousClock.now
            let second = try await all(now + 800)
            #expect(second.count == 1 && second != first && server.log.count == 2)
            // A request that began before the renewal does not cause another; a later one does.
            #expect(await source.renew(after: start, now: now + 800) && server.log.count == 2)
            #expect(await source.renew(after: .now, now: now + 800) && server.log.count == 3)
            // What is still valid is used while there is nothing newer, and the server is not asked by each request.
            try server.setMode("status=403")
            let third = try await all(now + 960)
            #expect(third.count == 1 && server.log.count == 4)
            #expect(try await all(now + 970) == third && server.log.count == 4)
            await #expect(throws: FileProviderError.self) { try await source.credentials(now: now + 2000) }
        }
    }

    @Test("S3-18: places are searched in the order of the AWS command line") func order() async throws {
        try await CredentialServer.run { server in
            let program =
                "echo {\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"program\\\",\\\"SecretAccessKey\\\":\\\"s\\\"}"
            let configured = "aws_access_key_id = configured\naws_secret_access_key = s\n"
            try server.configure(
                "[default]\n\(configured)[profile both]\n\(configured)credential_process = \(program)\n[profile none]\n"
            )
            try server.write(
                "[default]\naws_access_key_id = stored\naws_secret_access_key = s\n", to: ".aws/credentials")
            let keys = ["AWS_ACCESS_KEY_ID": "shell", "AWS_SECRET_ACCESS_KEY": "s"]
            let container = [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.address + "/role",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the token",
            ]
            #expect(try await server.find(server.environment(keys)).accessKeyID == "shell")
            #expect(try await server.find(server.environment(container)).accessKeyID == "stored")
            #expect(try await server.find(server.environment(keys), profile: "both").accessKeyID == "program")
            #expect(CredentialServer.isSession(try await server.find(server.environment(container), profile: "none")))
            try server.write("", to: ".aws/credentials")
            #expect(try await server.find(server.environment(container)).accessKeyID == "configured")
            #expect(server.log.count == 1)
        }
    }

    @Test("S3-18, S3-22: a role and single sign-on come before the keys of a profile, and the instance comes last")
    func orderOfServices() async throws {
        try await CredentialServer.run { server in
            let others = "aws_access_key_id = other\naws_secret_access_key = s\n"
            try server.configure(
                Self.session
                    + "[profile role]\nrole_arn = arn:aws:iam::1:role/first\nsource_profile = keys\n\(others)")
            try server.write(Self.keys + "[new]\n\(others)[role]\n\(others)", to: ".aws/credentials")
            let sum = try await Command.shell("printf company | sha1sum | cut -c1-40").line
            try server.write(
                #"{"accessToken": "bearer", "expiresAt": "2099-01-01T00:00:00Z"}"#, to: ".aws/sso/cache/\(sum).json")
            for profile in ["role", "new"] {
                let found = try await server.find(server.environment(), profile: profile)
                #expect(CredentialServer.isSession(found), "\(profile): \(found.accessKeyID)")
            }
            let both = [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.address + "/role",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the token", "AWS_EC2_METADATA_DISABLED": "false",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.address,
            ]
            #expect(CredentialServer.isSession(try await server.find(server.environment(both))))
            #expect(!server.log.contains { $0.contains("/latest/") }, "\(server.log)")
        }
    }

    @Test("S3-19: what the services give opens the bucket") func bucket() async throws {
        try await withBucket { bucket, _ in
            try await CredentialServer.run { server in
                let uri = [
                    "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.address,
                ]
                try await S3ProviderFactory.tryOut(
                    bucket.domain.source, bucket.store.options(), environment: server.environment(uri),
                    logger: Logger(label: "test"))
            }
        }
    }
}
