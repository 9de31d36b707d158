import Control
import Foundation
import ProviderDescriptors
import Replica
import Syscalls
import SystemPackage
import TOMLKit
import Web

/// The daemon's configuration file.
///
///     [materialization]
///     deny = ["my-indexer", "/opt/scanner/bin/*"]   # programs for which nothing is downloaded
///     deny-units = ["my-backup*.service"]           # systemd units for which nothing is
///     allow = ["restic"]                            # exceptions, also to the usual list
///     usual-list = true                             # false: without the list that comes with Yonder
///     process-budget = "20G"                        # how much a process may have fetched by reading
///
///     [ignore]
///     names = ["*.part", "node_modules"]            # what has such a name is never sent
///     usual-list = true                             # false: without the list that comes with Yonder
///
///     [metrics]
///     address = "127.0.0.1:9464"                    # where Prometheus reads; nowhere by default
///
///     [s3]                                          # options of all domains of a kind: see 'yonder providers'
///     region = "eu-central-1"
struct Configuration: Sendable {
    var rules = MaterializationRules.usual
    /// The fetch budget per process in bytes; nil for no limit.
    var processBudget: Int64?
    var ignoredNames = IgnoredNames.usual
    /// Where metrics are served; nil for nowhere.
    var metricsAddress: ListeningAddress?
    /// The options of all domains of a kind of remote, by the name of its descriptor.
    var remoteOptions: [String: [String: String]] = [:]
    /// What of the file has no effect, for `yonder mount` and `yonder status`.
    private(set) var complaints: [String] = []

    private struct File: Decodable {
        struct Materialization: Decodable {
            var deny: [String]?
            var denyUnits: [String]?
            var allow: [String]?
            var usualList: Bool?
            var processBudget: String?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case deny
                case denyUnits = "deny-units"
                case allow
                case usualList = "usual-list"
                case processBudget = "process-budget"
            }
        }

        struct Ignore: Decodable {
            var names: [String]?
            var usualList: Bool?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case names
                case usualList = "usual-list"
            }
        }

        struct Metrics: Decodable {
            var address: String?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case address
            }
        }

        var materialization: Materialization?
        var metrics: Metrics?
        var ignore: Ignore?
        var remotes: [String: [String: String]] = [:]
        /// The tables and keys that mean nothing, as they are shown.
        var unknown: [String] = []

        private struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let tables = try decoder.container(keyedBy: Key.self)
            materialization = try tables.decodeIfPresent(
                Materialization.self, forKey: Key(stringValue: "materialization"))
            ignore = try tables.decodeIfPresent(Ignore.self, forKey: Key(stringValue: "ignore"))
            metrics = try tables.decodeIfPresent(Metrics.self, forKey: Key(stringValue: "metrics"))
            let kinds = ProviderDescriptor.all.map(\.name)
            for name in kinds {
                remotes[name] = try tables.decodeIfPresent([String: String].self, forKey: Key(stringValue: name))
            }
            let sections = [
                "materialization": Materialization.CodingKeys.allCases.map(\.stringValue),
                "ignore": Ignore.CodingKeys.allCases.map(\.stringValue),
                "metrics": Metrics.CodingKeys.allCases.map(\.stringValue),
            ]
            for table in tables.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
                let name = table.stringValue
                if let known = sections[name] {
                    let keys = try tables.nestedContainer(keyedBy: Key.self, forKey: table).allKeys.map(\.stringValue)
                    unknown += keys.filter { !known.contains($0) }.sorted().map { "'\($0)' in [\(name)]" }
                } else if !kinds.contains(name) {
                    unknown.append("'\(name)'")
                }
            }
        }
    }

    /// - Parameters:
    ///   - path: need not exist. For an unreadable file, and for one with a mistake, the last text without one applies, or else the
    ///     defaults: a mistake must not send what was never to be sent.
    ///   - copy: keeps that text, with mode 0600.
    init(at path: String, keepingCopyAt copy: String) {
        let kept = URL(fileURLWithPath: copy)
        do {
            let bytes = try FilePath(path).contents()
            // A byte that is replaced would make another name of a pattern, and the parser stops at a NUL.
            guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
                throw Mistake(description: "it is not text in UTF-8")
            }
            self = try Configuration(text: text)
            // Without a copy the defaults apply in its place. Only the owner may read it: the user may have kept others from
            // reading the file.
            let isKept = (try? FilePath(copy).contents()) == bytes
            if !isKept || (try? FileStatus(at: FilePath(copy)))?.permissions != 0o600 {
                try? FilePath(copy).replaceDurably(with: bytes, permissions: .ownerReadWrite)
            }
        } catch Errno.noSuchFileOrDirectory, Errno.notDirectory {
            try? FileManager.default.removeItem(at: kept)
            return
        } catch {
            let mistake = (error as? DecodingError).map(Self.mistake) ?? "\(error)"
            if let text = try? String(contentsOf: kept, encoding: .utf8), let last = try? Configuration(text: text) {
                self = last
                complaints = ["what it said before applies, and nothing new: \(mistake)"]
            } else {
                complaints = ["nothing of it applies: \(mistake)"]
            }
        }
        complaints = complaints.map { "'\(path)': \($0)" }
    }

    init(text: String) throws {
        try ConfigurationSyntax.check(text)
        let file = try TOMLDecoder().decode(File.self, from: text)
        complaints = file.unknown.map { "\($0) means nothing, and is ignored" }
        if let section = file.materialization {
            if section.usualList == false { rules = MaterializationRules() }
            rules.programs += section.deny ?? []
            rules.units += section.denyUnits ?? []
            rules.exceptions += section.allow ?? []
            processBudget = try section.processBudget.map { text in
                guard let bytes = ByteText.bytes(text), bytes > 0 else { throw Mistake("process-budget", text) }
                return bytes
            }
        }
        if let section = file.ignore {
            if section.usualList == false { ignoredNames = .none }
            for name in section.names ?? [] {
                guard !name.isEmpty, !name.contains("/") else { throw Mistake("ignore.names", name) }
                ignoredNames.patterns.append(name)
            }
        }
        metricsAddress = try file.metrics?.address.map { text in
            guard let address = ListeningAddress(text) else { throw Mistake("metrics.address", text) }
            return address
        }
        for descriptor in ProviderDescriptor.all {
            guard let values = file.remotes[descriptor.name] else { continue }
            let known = values.filter { descriptor.option($0.key) != nil }
            complaints += values.keys.filter { known[$0] == nil }.sorted().map {
                "'\($0)' in [\(descriptor.name)] means nothing, and is ignored"
            }
            if let name = known.keys.sorted().first(where: { descriptor.option($0)?.isSecret == true }) {
                throw Mistake(description: "'\(name)' is secret, and may not be in [\(descriptor.name)]")
            }
            if let mistake = descriptor.mistake(in: known) { throw Mistake(description: mistake) }
            remoteOptions[descriptor.name] = known
        }
    }

    /// The error without the types of the decoder.
    private static func mistake(in error: DecodingError) -> String {
        let context: DecodingError.Context? =
            switch error {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                .dataCorrupted(let context):
                context
            @unknown default: nil
            }
        guard let path = context?.codingPath.map(\.stringValue), !path.isEmpty else { return "\(error)" }
        return "'\(path.joined(separator: "."))' has a value of another type than it takes"
    }

    private struct Mistake: Error, CustomStringConvertible {
        let description: String

        init(description: String) { self.description = description }

        init(_ key: String, _ value: String) { description = "'\(value)' makes no sense for \(key)" }
    }
}
