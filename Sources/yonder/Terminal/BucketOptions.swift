import Control
import Foundation

/// The bucket options and credentials from the flags and from the environment of this shell, which is not the daemon's.
struct BucketOptions {
    let options: ObjectStoreOptions
    /// The environment variables with credentials; empty if a profile is named.
    let credentials: [String: String]

    init(
        endpoint: String?, region: String?, profile: String?,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        func value(of names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let hasKey = value(of: "AWS_ACCESS_KEY_ID") != nil
        let profile = profile ?? (hasKey ? nil : value(of: "AWS_PROFILE"))
        options = ObjectStoreOptions(
            endpoint: endpoint ?? value(of: "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
            region: region ?? value(of: "AWS_REGION", "AWS_DEFAULT_REGION"), profile: profile)
        let names = profile == nil ? (hasKey ? Self.keys : Self.container) : []
        credentials = environment.filter { names.contains($0.key) && !$0.value.isEmpty }
    }

    private static let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
    private static let container = [
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ]
}
