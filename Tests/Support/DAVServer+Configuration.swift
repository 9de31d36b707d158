import Foundation
import SystemPackage

/// How each server is started.
extension DAVServer {
    static func arguments(
        _ kind: Kind, _ program: String, _ port: Int, _ admission: Admission, isSecure: Bool,
        _ directory: TemporaryDirectory
    ) throws -> [String] {
        let root = directory["root"].string
        switch kind {
        case .apache:
            let config = try directory.makeFile("config", apache(port, admission, isSecure: isSecure, directory).utf8)
            return [program, "-f", config.string, "-D", "FOREGROUND"]
        case .nginx:
            let config = try directory.makeFile("config", nginx(port, directory).utf8)
            return [program, "-c", config.string, "-g", "daemon off;"]
        case .wsgidav:
            return [
                program, "--host", "127.0.0.1", "--port", "\(port)", "--root", root, "--auth", "anonymous",
                "--no-config",
            ]
        case .rclone:
            return [
                program, "--config", "", "serve", "webdav", "--addr", "127.0.0.1:\(port)", "--dir-cache-time", "0s",
                root,
            ]
        case .lighttpd:
            let config = try directory.makeFile("config", lighttpd(port, directory).utf8)
            return [program, "-D", "-f", config.string]
        case .sabre:
            let script = try directory.makeFile("server.php", sabre(directory).utf8)
            return [program, "-S", "127.0.0.1:\(port)", script.string]
        case .reporting, .reportingMembers:
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/reporting_server.php").path
            return [
                "/usr/bin/env", "SERVED=\(root)", "STATE=\(directory.path)", "SABRE=\(kind.part ?? "")",
                "LEVELS=\(kind == .reporting ? "1 infinite" : "1")", "PART=3", program, "-S", "127.0.0.1:\(port)",
                script,
            ]
        case .xandikos:
            return [
                program, "serve", "--directory", root, "--listen-address", "127.0.0.1", "--port", "\(port)",
                "--no-detect-systemd", "--state-dir", directory["state"].string,
            ]
        }
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
            load_module \(Kind.nginx.part ?? "");
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

    private static func lighttpd(_ port: Int, _ directory: TemporaryDirectory) throws -> String {
        _ = try directory.makeDirectory("incoming")
        return """
            server.modules = ("mod_webdav")
            server.document-root = "\(directory["root"])"
            server.bind = "127.0.0.1"
            server.port = \(port)
            server.errorlog = "\(directory["errors"])"
            server.upload-dirs = ("\(directory["incoming"])")
            webdav.activate = "enable"
            webdav.is-readonly = "disable"
            webdav.sqlite-db-name = "\(directory["properties"])"

            """
    }

    private static func sabre(_ directory: TemporaryDirectory) -> String {
        """
        <?php
        error_reporting(E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR);
        ini_set('display_errors', '0');
        ini_set('log_errors', '1');
        ini_set('error_log', '\(directory["errors"])');
        require '\(Kind.sabre.part ?? "")';
        $server = new Sabre\\DAV\\Server(new Sabre\\DAV\\FS\\Directory('\(directory["root"])'));
        $server->setBaseUri('/');
        $server->addPlugin(new Sabre\\DAV\\Locks\\Plugin(new Sabre\\DAV\\Locks\\Backend\\File('\(directory["locks"])')));
        $server->exec();

        """
    }
}
