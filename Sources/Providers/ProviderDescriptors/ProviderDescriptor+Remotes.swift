extension ProviderDescriptor {
    /// All kinds of remote, in the order in which they are listed and in which a source is matched.
    package static let all: [ProviderDescriptor] = [.folder, .webDAV, .s3, .sftp, .rclone, .tar, .program]

    /// The kind of a source; nil if there is none.
    package static func serving(_ source: String) -> ProviderDescriptor? {
        all.first { $0.serves(source) } ?? (ProgramSource(source) == nil ? nil : .program)
    }

    /// The absolute path of the folder of this machine that a source names; nil for a source that names none.
    package static func folder(of source: String) -> String? {
        for prefix in all.flatMap(\.folderPrefixes) where source.utf8.starts(with: prefix.utf8) {
            let path = source.utf8.dropFirst(prefix.utf8.count)
            if path.first == UInt8(ascii: "/") { return String(Substring(path)) }
        }
        return nil
    }

    /// The forms of all sources, as a sentence lists them.
    package static var allForms: String {
        let forms = all.flatMap(\.forms)
        return forms.dropLast().joined(separator: ", ") + " or " + (forms.last ?? "")
    }

    package static let folder = ProviderDescriptor(
        name: "folder", summary: "A folder of this machine, or of a network mount.", forms: ["the path of a folder"],
        prefixes: ["/"], folderPrefixes: [""], usesNetwork: false)

    package static let webDAV = ProviderDescriptor(
        name: "webdav", summary: "A collection on a WebDAV server, such as Nextcloud, ownCloud or Apache.",
        forms: ["webdav://[USER@]HOST/PATH", "webdavs://[USER@]HOST/PATH"], prefixes: ["webdav://", "webdavs://"],
        options: [
            ProviderOption(
                "password", .password,
                """
                Read a password from standard input, one line; USER:PASSWORD if the source names no user. It is stored in \
                a file that only you can read.
                """)
        ],
        variables: httpVariables, pathVariables: httpPathVariables + ["NETRC"])

    package static let s3 = ProviderDescriptor(
        name: "s3", summary: "A bucket of an S3-compatible store, or the keys with a prefix in it.",
        forms: ["s3://BUCKET/PREFIX"], prefixes: ["s3://"],
        options: [
            ProviderOption(
                "endpoint", .url, "The server, if it is not Amazon.", valueName: "url",
                variables: ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
            ProviderOption("region", "The region of the bucket.", variables: ["AWS_REGION", "AWS_DEFAULT_REGION"]),
            ProviderOption("profile", "The profile in ~/.aws with the credentials.", variables: ["AWS_PROFILE"]),
            ProviderOption(
                "access-key", "The access key ID; its secret key is asked for, or read with --secret-key-stdin."),
            ProviderOption(
                "secret-key", .secret,
                """
                Read the secret key of --access-key from standard input, one line. It is stored in a file that only you \
                can read.
                """),
        ],
        variables: httpVariables + [
            "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SSO", "AWS_EC2_METADATA_DISABLED",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
            "AWS_METADATA_SERVICE_TIMEOUT",
        ],
        pathVariables: httpPathVariables + ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"],
        identity: IdentityVariables(
            groups: [
                ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
                ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"],
                [
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                ],
            ], paths: ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"], option: "profile"))

    package static let sftp = ProviderDescriptor(
        name: "sftp", summary: "A directory on an SSH server. ssh connects, with its own configuration and keys.",
        forms: ["sftp://[USER@]HOST/PATH"], prefixes: ["sftp://"], pathVariables: ["SSH_AUTH_SOCK"])

    package static let rclone = ProviderDescriptor(
        name: "rclone", summary: "A remote of rclone's configuration: Google Drive, OneDrive, Dropbox and many more.",
        forms: ["rclone:REMOTE:PATH"], prefixes: ["rclone:"], folderPrefixes: ["rclone:", "rclone::local:"],
        options: [
            ProviderOption(
                "config-password", .secret,
                "Read the password of an encrypted rclone configuration from standard input, one line.")
        ],
        variables: httpVariables, pathVariables: httpPathVariables + ["RCLONE_CONFIG", "SSH_AUTH_SOCK"])

    package static let tar = ProviderDescriptor(
        name: "tar", summary: "An uncompressed tar archive, read-only.", forms: ["tar:///PATH"], prefixes: ["tar://"],
        usesNetwork: false)

    /// A program says itself which options it takes.
    package static let program = ProviderDescriptor(
        name: "program", summary: "What the program yonder-provider-NAME serves (Docs/Protocol.md).",
        forms: ["NAME:ANYTHING"], prefixes: [], takesAnyOption: true)

    /// Proxies and certificates, of all remotes that are reached by HTTP.
    private static let httpVariables = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]
    private static let httpPathVariables = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
}
