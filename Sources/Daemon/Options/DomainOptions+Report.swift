import Control
import ProviderDescriptors

extension DomainOptions {
    /// All options of a domain with this source, in the words that `yonder set` takes. Secrets are no options.
    func report(for source: String) -> [OptionsReport.Option] {
        func isSet(_ value: Bool?) -> String { value ?? false ? "yes" : "no" }
        let general: [(String, String)] =
            [
                ("cache-limit", cacheLimit.map(Self.size) ?? "none"),
                ("cache-time", cacheSeconds.map(Self.text) ?? "none"),
                ("limit-up", upRate.map { String($0) } ?? "none"),
                ("limit-down", downRate.map { String($0) } ?? "none"),
                ("metered", pausesWhileMetered ?? false ? "pause" : "ignore"),
                ("poll", pollSeconds.map(Self.text) ?? "none"),
                ("fsync", waitsForRemote ?? false ? "remote" : "local"),
                ("read-only", isSet(isReadOnly)), ("allow-other", isSet(allowsOthers)), ("dev", isSet(allowsDevices)),
                ("suid", isSet(allowsSetID)), ("uid", user.map { String($0) } ?? "none"),
                ("gid", group.map { String($0) } ?? "none"), ("umask", umask.map(Self.octal) ?? "none"),
            ] + (ignoredNames ?? []).map { ("ignore", $0) }
        let remote = remote ?? [:]
        let described = ProviderDescriptor.serving(source)?.options.filter { !$0.isSecret }.map(\.name) ?? []
        // Only a program knows its own options.
        let others = remote.keys.filter { !described.contains($0) }.sorted()
        return general.map { OptionsReport.Option(name: $0, value: $1) }
            + (described + others).map { OptionsReport.Option(name: $0, value: remote[$0]) }
    }

    private static func size(_ bytes: Int64) -> String {
        0 < bytes && bytes < ByteText.leastWithoutUnit ? "\(bytes)b" : String(bytes)
    }

    private static func octal(_ mask: UInt16) -> String { "0" + String(mask, radix: 8) }

    private static func text(_ seconds: Double) -> String {
        Int64(exactly: seconds).map { String($0) } ?? String(seconds)
    }
}
