import Foundation
import SystemPackage

/// A real WebDAV server on loopback over a folder of its own, for one test.
package struct DAVServer: Sendable {
    /// The servers that tests know to start.
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case apache, nginx, wsgidav, rclone

        package var description: String { rawValue }

        /// Where its program is; nil when it is not installed.
        package var program: String? {
            let name = self == .apache ? "apache2" : rawValue
            let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
            let program = (folders + ["/usr/sbin", "/usr/bin"]).map { $0 + "/" + name }
                .first { FileManager.default.isExecutableFile(atPath: $0) }
            if self == .nginx, !FileManager.default.fileExists(atPath: Self.nginxModule) { return nil }
            return program
        }

        fileprivate static let nginxModule = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"

        /// The servers that are installed.
        package static var installed: [Kind] { allCases.filter { $0.program != nil } }
    }

    /// Who is let in; only Apache asks.
    package enum Admission: Sendable {
        case everybody
        /// `user` with the password `secret word`.
        case basic
        case digest
    }

    package struct DidNotStart: Error, CustomStringConvertible {
        package var description: String
    }

    package let directory: TemporaryDirectory
    /// The folder that is served.
    package let root: FilePath
    package let port: Int
    package let isSecure: Bool
    private let arguments: [String]
    private let program: BackgroundProgram

    /// `host:port`.
    package var authority: String { "\(isSecure ? "localhost" : "127.0.0.1"):\(port)" }
    /// As a source: the whole folder.
    package var source: String { "\(isSecure ? "webdavs" : "webdav")://\(authority)/" }
    /// The certificate that signed the server's own.
    package var authorityFile: FilePath { directory["ca.pem"] }

    /// Starts a server, with a port that is free. Returns when it answers.
    ///
    /// - Parameter isSecure: with a certificate that only ``authorityFile`` knows; Apache only.
    package static func start(
        _ kind: Kind, _ admission: Admission = .everybody, isSecure: Bool = false
    ) async throws -> DAVServer {
        let directory = try TemporaryDirectory()
        do {
            if isSecure { try await makeCertificates(in: directory) }
            for _ in 0..<5 {
                if let server = try await attempt(kind, admission, isSecure: isSecure, in: directory) { return server }
            }
            throw DidNotStart(description: "\(kind) does not start: \(log(in: directory))")
        } catch {
            directory.remove()
            throw error
        }
    }

    /// Ends the server and removes its folder.
    package func stop() async {
        await halt()
        directory.remove()
    }

    /// Ends the server; its folder stays.
    package func halt() async {
        program.interrupt()
        if await !program.ends(within: .seconds(15)) { program.kill() }
    }

    /// The server as it was, started anew.
    package func again() async throws -> DAVServer {
        let program = try BackgroundProgram(arguments)
        guard await Self.answers(program, port) else { throw DidNotStart(description: "it does not start again") }
        return DAVServer(
            directory: directory, root: root, port: port, isSecure: isSecure, arguments: arguments, program: program)
    }

    private static func answers(_ program: BackgroundProgram, _ port: Int) async -> Bool {
        let isOver = await eventually(within: .seconds(10)) {
            guard program.isRunning else { return true }
            return (try? await Command.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(port)").status) == 0
        }
        return isOver && program.isRunning
    }

    private static func attempt(
        _ kind: Kind, _ admission: Admission, isSecure: Bool, in directory: TemporaryDirectory
    ) async throws -> DAVServer? {
        guard let path = kind.program else { throw DidNotStart(description: "\(kind) is not installed") }
        let port = Int.random(in: 20_000...32_000)
        let root = try directory.makeDirectory("root")
        // A server may run as somebody else than the test.
        for folder in [directory.path, root] {
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.string)
        }
        let arguments: [String]
        switch kind {
        case .apache:
            _ = try directory.makeFile("config", apache(port, admission, isSecure: isSecure, directory).utf8)
            arguments = [path, "-f", directory["config"].string, "-D", "FOREGROUND"]
        case .nginx:
            _ = try directory.makeFile("config", nginx(port, directory).utf8)
            arguments = [path, "-c", directory["config"].string, "-g", "daemon off;"]
        case .wsgidav:
            arguments = [
                path, "--host", "127.0.0.1", "--port", "\(port)", "--root", root.string, "--auth", "anonymous",
                "--no-config",
            ]
        case .rclone:
            arguments = [
                path, "--config", "", "serve", "webdav", "--addr", "127.0.0.1:\(port)", "--dir-cache-time", "0s",
                root.string,
            ]
        }
        let program = try BackgroundProgram(arguments)
        guard await answers(program, port) else {
            program.kill()
            return nil
        }
        return DAVServer(
            directory: directory, root: root, port: port, isSecure: isSecure, arguments: arguments, program: program)
    }

    private static func log(in directory: TemporaryDirectory) -> String {
        (try? String(contentsOfFile: directory["errors"].string, encoding: .utf8)) ?? ""
    }

    private static func apache(
        _ port: Int, _ admission: Admission, isSecure: Bool, _ directory: TemporaryDirectory
    ) throws -> String {
        let (user, _) = try directory.owner
        var modules = ["authz_core", "authn_core", "dav", "dav_fs", "mpm_event"]
        var access = "Require all granted"
        if admission != .everybody {
            modules += ["authn_file", "authz_user", admission == .basic ? "auth_basic" : "auth_digest"]
            // What `htpasswd -nbs` and `htdigest` make of it.
            let line =
                admission == .basic
                ? "user:{SHA}PDUC6jG3V40qqE4XqHRFLkyoMVM=" : "user:the realm:8a85896b978328c7a8547b88a41b8f24"
            _ = try directory.makeFile("people", (line + "\n").utf8)
            access = """
                AuthType \(admission == .basic ? "Basic" : "Digest")
                AuthName "the realm"
                \(admission == .basic ? "AuthBasicProvider" : "AuthDigestProvider") file
                AuthUserFile "\(directory["people"])"
                Require valid-user
                """
        }
        if isSecure { modules.append("ssl") }
        return """
            ServerRoot "\(directory.path)"
            ServerName localhost
            PidFile "\(directory["pid"])"
            Listen 127.0.0.1:\(port)
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            \(user == 0 ? "User www-data\nGroup www-data" : "")
            \(isSecure ? "SSLEngine on\nSSLCertificateFile \(directory["server.pem"])" : "")
            ErrorLog "\(directory["errors"])"
            DavLockDB "\(directory["locks"])"
            DocumentRoot "\(directory["root"])"
            <Directory "\(directory["root"])">
              Dav On
              \(access)
            </Directory>

            """
    }

    private static func nginx(_ port: Int, _ directory: TemporaryDirectory) throws -> String {
        let (user, _) = try directory.owner
        return """
            load_module \(Kind.nginxModule);
            \(user == 0 ? "user root;" : "")
            pid \(directory["pid"]);
            error_log \(directory["errors"]);
            events {}
            http {
              access_log off;
              client_body_temp_path \(directory["incoming"]);
              dav_ext_lock_zone zone=locks:1m;
              server {
                listen 127.0.0.1:\(port);
                client_max_body_size 0;
                root \(directory["root"]);
                location / {
                  dav_methods PUT DELETE MKCOL COPY MOVE;
                  dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK;
                  dav_ext_lock zone=locks;
                }
              }
            }

            """
    }

    private static func makeCertificates(in directory: TemporaryDirectory) async throws {
        let outcome = try await Command.shell(
            """
            cd "$1" && umask 022 &&
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=yonder test" -keyout ca.key -out ca.pem &&
            openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout server.key -out server.csr &&
            printf 'subjectAltName=DNS:localhost' > extensions &&
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions \
                -out server.crt && cat server.key server.crt > server.pem
            """, directory.path.string)
        guard outcome.status == 0 else { throw DidNotStart(description: outcome.errors) }
    }
}
