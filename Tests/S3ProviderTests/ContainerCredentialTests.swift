import FileProvider
import Foundation
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// Credentials of the container that this machine is.
@Suite(.tags(.server)) struct ContainerCredentialTests {
    @Test("S3-23: a container's address is checked, and so is its answer") func container() async throws {
        try await CredentialServer.run { server in
            try server.write("the token\n", to: "token")
            let uri = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": server.address + "/role"]
            let file = uri.merging(["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": server.scratch["token"].string]) { $1 }
            #expect(CredentialServer.isSession(try await server.find(server.environment(file))))
            let wrong = uri.merging(["AWS_CONTAINER_AUTHORIZATION_TOKEN": "wrong"]) { $1 }
            #expect(await server.refusal(server.environment(wrong)).contains("status 403"))
            try server.setMode("malformed")
            #expect(await server.refusal(server.environment(file)).contains("malformed"))
            try server.setMode("status=500")
            let error = await failure { _ = try await server.find(server.environment(file)) }
            #expect(error?.code == .serverUnreachable)
            try server.setMode("silent")
            #expect(await failure { _ = try await server.find(server.environment(file)) }?.code == .timedOut)
        }
    }

    @Test("S3-23: credentials of a container come from this machine, the addresses of ECS and EKS, or by HTTPS alone")
    func containerAddresses() {
        func isTaken(_ address: String) -> Bool {
            let environment = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": address]
            return (try? ContainerCredentials(environment: environment)) != nil
        }
        for address in [
            "http://localhost/role", "http://127.0.0.1:8080/role", "http://127.9.9.9/role", "http://[::1]/role",
            "http://169.254.170.2/role", "http://169.254.170.23/v1", "http://[fd00:ec2::23]/v1",
            "https://example.org/role",
        ] { #expect(isTaken(address), "\(address)") }
        for address in [
            "http://example.org/role", "http://127.0.0.1.example.org/role", "http://127.example.org/role",
            "http://169.254.170.2.example.org/role", "http://host.localhost/role", "http://169.254.169.254/role",
            "http://10.0.0.1/role", "http://[fd00:ec2::24]/role", "ftp://127.0.0.1/role", "role",
        ] { #expect(!isTaken(address), "\(address)") }
    }

    @Test("S3-23: credentials of a container do not come through a proxy") func containerWithoutProxy() async throws {
        try await CredentialServer.run { server in
            let log = server.scratch["proxy log"].string
            let proxy = try await ScriptedServer(program: "HTTPTransportTests/Programs/proxy.py", [log])
            defer { proxy.stop() }
            let address = "http://127.0.0.1:\(proxy.port)"
            let proxies = ["http_proxy": address, "https_proxy": address, "ALL_PROXY": address]
            // All other requests to this address go through it.
            let container = HTTPURL(isSecure: false, host: "169.254.170.2", path: "/role")
            #expect(ProxySettings(environment: proxies).usesProxy(for: container))
            let environment = server.environment(["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": container.path])
            let source = server.source(environment, transport: CredentialServer.transport(proxies))
            // Whether something answers there depends on the machine.
            _ = try? await source.credentials(now: FileTimestamp.now.seconds)
            #expect(!FileManager.default.fileExists(atPath: log))
        }
    }
}
