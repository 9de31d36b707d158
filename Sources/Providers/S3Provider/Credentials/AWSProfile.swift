import FileProvider
import Foundation
import HTTPTransport

/// A profile, with its settings in both files.
package struct AWSProfile: Sendable {
    package var name: String
    package var settings: [String: String] = [:]
    /// Whether neither file has it.
    package var isMissing: Bool
    /// The keys in `~/.aws/credentials`.
    let storedCredentials: S3Credentials?
    /// The keys in `~/.aws/config`.
    let configuredCredentials: S3Credentials?
    private let config: AWSFile

    /// - Parameters:
    ///   - name: nil for the profile in the environment, else `default`.
    ///   - environment: for `AWS_PROFILE`, `AWS_SHARED_CREDENTIALS_FILE`, `AWS_CONFIG_FILE` and `HOME`.
    package init(named name: String?, environment: [String: String]) {
        let name = name ?? environment["AWS_PROFILE"].flatMap { $0.isEmpty ? nil : $0 } ?? "default"
        let home = environment["HOME"] ?? NSHomeDirectory()
        config = AWSFile(path: environment["AWS_CONFIG_FILE"] ?? "\(home)/.aws/config")
        let secrets = AWSFile(path: environment["AWS_SHARED_CREDENTIALS_FILE"] ?? "\(home)/.aws/credentials")
        self.name = name
        let configured = config.sections["profile \(name)"] ?? (name == "default" ? config.sections["default"] : nil)
        let stored = secrets.sections[name]
        isMissing = configured == nil && stored == nil
        settings = (configured ?? [:]).merging(stored ?? [:]) { $1 }
        storedCredentials = stored.flatMap(Self.credentials)
        configuredCredentials = configured.flatMap(Self.credentials)
    }

    private static func credentials(in settings: [String: String]) -> S3Credentials? {
        guard let key = settings["aws_access_key_id"], let secret = settings["aws_secret_access_key"], !key.isEmpty,
            !secret.isEmpty
        else { return nil }
        return S3Credentials(accessKeyID: key, secretAccessKey: secret, sessionToken: settings["aws_session_token"])
    }

    var hasRoleSource: Bool { settings["source_profile"] != nil || settings["credential_source"] != nil }

    /// The settings of a section such as `[sso-session NAME]`; nil if there is none.
    func section(_ kind: String, _ name: String) -> [String: String]? { config.sections["\(kind) \(name)"] }

    /// The user's address of a service: `AWS_ENDPOINT_URL_STS`, else that of the profile.
    ///
    /// - Parameter service: in lower case, such as `sts`.
    /// - Throws: `notAuthenticated` for an invalid address.
    func endpoint(of service: String, environment: [String: String]) throws -> HTTPURL? {
        let variable = "AWS_ENDPOINT_URL_\(service.uppercased())"
        let services = settings["services"].flatMap { section("services", $0) }
        let candidates = [
            environment[variable], environment["AWS_ENDPOINT_URL"], services?["\(service).endpoint_url"],
            settings["endpoint_url"],
        ]
        guard let text = candidates.lazy.compactMap({ $0 }).first(where: { !$0.isEmpty }) else { return nil }
        guard let url = HTTPURL(text), url.query == nil else {
            throw FileProviderError(.notAuthenticated, "the address of \(service) (\(variable)) is invalid")
        }
        return url
    }
}
