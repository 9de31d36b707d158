import Foundation

/// `~/.aws/credentials` and `~/.aws/config`: sections of settings.
package struct AWSFile: Sendable {
    /// By section, as it is named between the brackets.
    package private(set) var sections: [String: [String: String]] = [:]

    package init(text: String) {
        var section: String?
        var outer: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let isNested = line.first == " " || line.first == "\t"
            let words = line.trimmingCharacters(in: .whitespaces)
            guard !words.isEmpty, words.first != "#", words.first != ";" else { continue }
            if words.first == "[" {
                section = words.dropFirst().prefix { $0 != "]" }.trimmingCharacters(in: .whitespaces)
                section.map { sections[$0, default: [:]] = sections[$0] ?? [:] }
                outer = nil
                continue
            }
            guard let section, let equals = words.firstIndex(of: "=") else { continue }
            let name = words[..<equals].trimmingCharacters(in: .whitespaces)
            let value = words[words.index(after: equals)...].trimmingCharacters(in: .whitespaces)
            if isNested, let outer {
                sections[section]?["\(outer).\(name)"] = value
            } else {
                sections[section]?[name] = value
                outer = value.isEmpty ? name : nil
            }
        }
    }

    package init(path: String) {
        self.init(text: (try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
    }
}

/// A profile, with its settings in both files.
package struct AWSProfile: Sendable {
    package var name: String
    package var settings: [String: String] = [:]
    /// Whether neither file has it.
    package var isMissing: Bool

    /// - Parameters:
    ///   - name: nil for the profile in the environment, else `default`.
    ///   - environment: for `AWS_PROFILE`, `AWS_SHARED_CREDENTIALS_FILE`, `AWS_CONFIG_FILE` and `HOME`.
    package init(named name: String?, environment: [String: String]) {
        let name = name ?? environment["AWS_PROFILE"].flatMap { $0.isEmpty ? nil : $0 } ?? "default"
        let home = environment["HOME"] ?? NSHomeDirectory()
        let config = AWSFile(path: environment["AWS_CONFIG_FILE"] ?? "\(home)/.aws/config")
        let secrets = AWSFile(path: environment["AWS_SHARED_CREDENTIALS_FILE"] ?? "\(home)/.aws/credentials")
        self.name = name
        let configured = config.sections["profile \(name)"] ?? (name == "default" ? config.sections["default"] : nil)
        isMissing = configured == nil && secrets.sections[name] == nil
        settings = (configured ?? [:]).merging(secrets.sections[name] ?? [:]) { $1 }
    }

    var credentials: S3Credentials? {
        guard let key = settings["aws_access_key_id"], let secret = settings["aws_secret_access_key"], !key.isEmpty,
            !secret.isEmpty
        else { return nil }
        return S3Credentials(accessKeyID: key, secretAccessKey: secret, sessionToken: settings["aws_session_token"])
    }
}
