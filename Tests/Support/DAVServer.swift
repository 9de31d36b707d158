import Foundation
import SystemPackage

/// A real WebDAV server on loopback over a folder of its own, for one test.
package struct DAVServer: Sendable {
    /// The servers that tests know to start.
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case apache, nginx, wsgidav, rclone, lighttpd, sabre
        /// sabre/dav with reports of what has changed, for whole trees.
        case reporting
        /// Likewise for one directory at a time.
        case reportingMembers
        /// Keeps each directory in a repository of its own, and reports what has changed in one.
        case xandikos

        package var description: String { rawValue }

        /// Where its program is; nil when it is not installed.
        package var program: String? {
            let name =
                switch self {
                case .apache: "apache2"
                case .sabre, .reporting, .reportingMembers: "php"
                default: rawValue
                }
            if let part, !FileManager.default.fileExists(atPath: part) { return nil }
            if [.reporting, .reportingMembers].contains(self), !Self.hasSQLite { return nil }
            let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
            return (folders + ["/usr/sbin", "/usr/bin"]).map { $0 + "/" + name }
                .first { FileManager.default.isExecutableFile(atPath: $0) }
        }

        /// What the program is not enough without.
        var part: String? {
            switch self {
            case .nginx: "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
            case .lighttpd: "/usr/lib/lighttpd/mod_webdav.so"
            case .sabre, .reporting, .reportingMembers: "/usr/share/php/Sabre/autoload.php"
            case .apache, .wsgidav, .rclone, .xandikos: nil
            }
        }

        /// Whether PHP has what the server that reports keeps its log in.
        private static var hasSQLite: Bool {
            let folder = "/usr/lib/php/"
            let versions = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return versions.contains { FileManager.default.fileExists(atPath: folder + $0 + "/pdo_sqlite.so") }
        }

        /// The servers that are installed and serve a folder as it is on the disk.
        package static var installed: [Kind] {
            allCases.filter { $0.program != nil && ![.xandikos, .reporting, .reportingMembers].contains($0) }
        }
    }

    /// Who is let in; only Apache asks.
    package enum Admission: Sendable {
        case everybody
        /// `user` with the password `secret word`.
        case basic
        case digest
    }

    package let directory: TemporaryDirectory
    /// The folder that is served.
    package let root: FilePath
    package let port: Int
    package let isSecure: Bool
    private let arguments: [String]
    private let program: BackgroundProgram

    /// What was asked of a server that reports, a line each: method, depth, path.
    package var requests: [String] {
        let text = (try? String(contentsOfFile: directory["requests"].string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

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
            throw TestFailure("\(kind) does not start: \(log(in: directory))")
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
        let program = try await BackgroundProgram(arguments)
        guard await program.answers(on: port) else { throw TestFailure("it does not start again") }
        return DAVServer(
            directory: directory, root: root, port: port, isSecure: isSecure, arguments: arguments, program: program)
    }

    private static func attempt(
        _ kind: Kind, _ admission: Admission, isSecure: Bool, in directory: TemporaryDirectory
    ) async throws -> DAVServer? {
        guard let path = kind.program else { throw TestFailure("\(kind) is not installed") }
        let port = Int.random(in: 20_000...32_000)
        // Another test's server would be taken for this one.
        guard await !BackgroundProgram.isListenedTo(port) else { return nil }
        let root = try directory.makeDirectory("root")
        // A server may run as another user than the test.
        for folder in [directory.path, root] {
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.string)
        }
        let arguments = try arguments(kind, path, port, admission, isSecure: isSecure, directory)
        let program = try await BackgroundProgram(arguments)
        guard await program.answers(on: port) else {
            program.kill()
            return nil
        }
        return DAVServer(
            directory: directory, root: root, port: port, isSecure: isSecure, arguments: arguments, program: program)
    }

    /// What the server has complained of.
    package var log: String { Self.log(in: directory) }

    private static func log(in directory: TemporaryDirectory) -> String {
        (try? String(contentsOfFile: directory["errors"].string, encoding: .utf8)) ?? ""
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
        guard outcome.status == 0 else { throw TestFailure(outcome.errors) }
    }
}
