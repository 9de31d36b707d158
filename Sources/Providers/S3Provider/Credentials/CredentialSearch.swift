import FileProvider
import Foundation

/// Searches the places of the AWS command line for credentials, in its order: the environment, the roles and the web identity of
/// a profile, its single sign-on, its keys, its program, the container, the EC2 instance.
struct CredentialSearch: Sendable {
    /// Credentials, and the seconds after which their place is read again; nil where they stay until they are refused.
    struct Found {
        var credentials: S3Credentials
        var lifetime: Int64?

        /// Other tools put new tokens into files and variables.
        static func stored(_ credentials: S3Credentials) -> Found { Found(credentials: credentials, lifetime: 60) }
    }

    let profile: String?
    let region: String
    let environment: [String: String]
    let transport: CredentialTransport

    /// - Throws: `notAuthenticated` with what is missing or wrong; `serverUnreachable` for a service that does not answer.
    func find() async throws -> Found {
        if profile == nil, let keys = try environmentKeys() { return .stored(keys) }
        let named = AWSProfile(named: profile, environment: environment)
        if profile != nil, named.isMissing { throw Self.missing(named.name) }
        if named.settings["role_arn"] != nil, named.hasRoleSource { return try await role(of: named, through: []) }
        if profile == nil, let file = value("AWS_WEB_IDENTITY_TOKEN_FILE") {
            guard let arn = value("AWS_ROLE_ARN") else {
                throw FileProviderError(
                    .notAuthenticated, "AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not")
            }
            let role = SecurityTokenService.Role(arn: arn, sessionName: value("AWS_ROLE_SESSION_NAME"))
            return try await webIdentity(role, tokenFile: file, of: named)
        }
        if let found = try await credentials(in: named) { return found }
        if let found = try await container() { return found }
        if let found = try await instance() { return found }
        guard profile == nil else {
            throw FileProviderError(.notAuthenticated, "the profile '\(named.name)' has no access key")
        }
        throw FileProviderError(
            .notAuthenticated,
            "no credentials for S3: neither AWS_ACCESS_KEY_ID, a profile in ~/.aws, a container's address nor the metadata "
                + "of an EC2 instance has any; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with "
                + "--profile")
    }

    private func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

    private static func missing(_ name: String) -> FileProviderError {
        FileProviderError(.notAuthenticated, "there is no profile '\(name)' in ~/.aws")
    }

    private func environmentKeys() throws -> S3Credentials? {
        guard let key = value("AWS_ACCESS_KEY_ID") else { return nil }
        guard let secret = value("AWS_SECRET_ACCESS_KEY") else {
            throw FileProviderError(
                .notAuthenticated,
                "an access key is given without its secret key: set AWS_SECRET_ACCESS_KEY, or mount again with "
                    + "--secret-key-stdin")
        }
        return S3Credentials(
            accessKeyID: key, secretAccessKey: secret, sessionToken: value("AWS_SESSION_TOKEN"))
    }

    // MARK: - Profiles

    /// The credentials of a profile, without the roles that it assumes with others' keys.
    private func credentials(in profile: AWSProfile) async throws -> Found? {
        let settings = profile.settings
        if let file = settings["web_identity_token_file"], let arn = settings["role_arn"] {
            let role = SecurityTokenService.Role(arn: arn, settings)
            return try await webIdentity(role, tokenFile: file, of: profile)
        }
        if let session = try SingleSignOn(profile, environment: environment) {
            return Found(credentials: try await session.credentials(over: transport, now: FileTimestamp.now.seconds))
        }
        if let keys = profile.storedCredentials { return .stored(keys) }
        if let command = settings["credential_process"], !command.isEmpty {
            let credentials = try await CredentialProcess(command, environment: environment).credentials()
            return Found(credentials: credentials)
        }
        return profile.configuredCredentials.map(Found.stored)
    }

    /// Assumes the role of a profile, with credentials from its source.
    ///
    /// - Parameter names: the profiles that lead to this one.
    private func role(of profile: AWSProfile, through names: [String]) async throws -> Found {
        let settings = profile.settings
        guard settings["mfa_serial"] == nil else {
            throw FileProviderError(
                .notAuthenticated,
                "the role of the profile '\(profile.name)' needs a code of a device (mfa_serial), which cannot be entered "
                    + "here: use single sign-on or credential_process")
        }
        let keys = try await roleSource(of: profile, through: names + [profile.name])
        let service = try service("sts", for: profile)
        let role = SecurityTokenService.Role(arn: settings["role_arn"] ?? "", settings)
        return Found(credentials: try await service.assume(role, with: keys.credentials))
    }

    private func roleSource(of profile: AWSProfile, through names: [String]) async throws -> Found {
        guard let source = profile.settings["source_profile"] else {
            let place = profile.settings["credential_source"] ?? ""
            let found: Found? =
                switch place {
                case "Environment": try environmentKeys().map(Found.stored)
                case "EcsContainer": try await container()
                case "Ec2InstanceMetadata": try await instance()
                default: nil
                }
            guard let found else {
                throw FileProviderError(
                    .notAuthenticated,
                    "credential_source of the profile '\(profile.name)' is '\(place)', which has no credentials here")
            }
            return found
        }
        let next = AWSProfile(named: source, environment: environment)
        if next.isMissing { throw Self.missing(source) }
        let hasKeys = next.storedCredentials != nil || next.configuredCredentials != nil
        if !hasKeys, next.settings["role_arn"] != nil, next.hasRoleSource {
            guard !names.contains(source) else {
                throw FileProviderError(
                    .notAuthenticated, "the profiles \(names.joined(separator: ", ")) name each other as their source")
            }
            return try await role(of: next, through: names)
        }
        guard let found = try await credentials(in: next) else {
            throw FileProviderError(.notAuthenticated, "the profile '\(source)' has no credentials")
        }
        return found
    }

    // MARK: - Services

    private func service(_ name: String, for profile: AWSProfile) throws -> SecurityTokenService {
        let region = profile.settings["region"] ?? region
        return SecurityTokenService(
            endpoint: try profile.endpoint(of: name, environment: environment)
                ?? SecurityTokenService.endpoint(in: region), region: region, transport: transport)
    }

    private func webIdentity(
        _ role: SecurityTokenService.Role, tokenFile: String, of profile: AWSProfile
    ) async throws -> Found {
        guard let token = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
            throw FileProviderError(.notAuthenticated, "the web identity token '\(tokenFile)' cannot be read")
        }
        let service = try service("sts", for: profile)
        return Found(
            credentials: try await service.assume(
                role, withWebIdentity: token.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    private func container() async throws -> Found? {
        guard let container = try ContainerCredentials(environment: environment) else { return nil }
        return Found(credentials: try await container.credentials(over: transport), lifetime: 60)
    }

    private func instance() async throws -> Found? {
        guard let metadata = try InstanceMetadata(environment: environment) else { return nil }
        return try await metadata.credentials(over: transport).map { Found(credentials: $0, lifetime: 60) }
    }
}
