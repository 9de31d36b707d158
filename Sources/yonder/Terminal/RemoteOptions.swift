import ArgumentParser
import Control
import Foundation

/// The options for credentials and buckets of commands that name a source.
struct RemoteOptions: ParsableArguments {
    @Flag(
        help: """
            Read a password from standard input, one line; USER:PASSWORD if the source names no user. It is stored in \
            a file that only you can read.
            """)
    var passwordStdin = false

    @Option(help: ArgumentHelp("S3: the server, if it is not Amazon.", valueName: "url"))
    var endpoint: String?

    @Option(help: "S3: the region of the bucket.")
    var region: String?

    @Option(help: "S3: the profile in ~/.aws with the credentials.")
    var profile: String?

    /// - Throws: `ValidationError` for options that do not apply to the source.
    func check(for source: String) throws {
        if !Self.isObjectStore(source), endpoint != nil || region != nil || profile != nil {
            throw ValidationError("--endpoint, --region and --profile are for s3:// sources")
        }
    }

    /// Adds the credentials and bucket options from the flags and the environment for the source of the arguments, if
    /// there is one. Reads the password from standard input if requested.
    func add(to arguments: inout MountArguments, for source: String) throws {
        let store =
            Self.isObjectStore(source)
            ? BucketOptions(endpoint: endpoint, region: region, profile: profile) : nil
        let variables = RemoteEnvironment.variables(for: source).merging(store?.credentials ?? [:]) { $1 }
        arguments.credentials = passwordStdin ? try credentials(for: source) : nil
        if !variables.isEmpty {
            arguments.credentials = arguments.credentials ?? GivenCredentials(variables: variables)
            arguments.credentials?.variables = variables
        }
        arguments.objectStore = store?.options
    }

    private static func isObjectStore(_ source: String) -> Bool { source.hasPrefix("s3://") }

    private func credentials(for source: String) throws -> GivenCredentials {
        guard let line = readLine(), !line.isEmpty else {
            Output.complain("--password-stdin: no password on standard input")
            throw ExitCode(64)
        }
        if let user = Self.user(in: source) { return GivenCredentials(user: user, password: line) }
        if let colon = line.firstIndex(of: ":") {
            return GivenCredentials(
                user: String(line[..<colon]), password: String(line[line.index(after: colon)...]))
        }
        return GivenCredentials(user: NSUserName(), password: line)
    }

    /// The user name in a source.
    private static func user(in source: String) -> String? {
        guard let scheme = source.range(of: "://") else { return nil }
        let authority = source[scheme.upperBound...].prefix { $0 != "/" }
        return authority.lastIndex(of: "@").flatMap { String(authority[..<$0]).removingPercentEncoding }
    }
}
