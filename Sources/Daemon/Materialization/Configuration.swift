import Foundation
import Logging
import TOMLKit

/// The daemon's configuration file.
///
///     [materialization]
///     deny = ["my-indexer", "/opt/scanner/bin/*"]   # programs for which nothing is downloaded
///     deny-units = ["my-backup*.service"]           # systemd units for which nothing is
///     allow = ["restic"]                            # exceptions, also to the usual list
///     usual-list = true                             # false: without the list that comes with Yonder
struct Configuration: Sendable {
    var rules = MaterializationRules.usual

    private struct File: Decodable {
        struct Materialization: Decodable {
            var deny: [String]?
            var denyUnits: [String]?
            var allow: [String]?
            var usualList: Bool?

            enum CodingKeys: String, CodingKey {
                case deny
                case denyUnits = "deny-units"
                case allow
                case usualList = "usual-list"
            }
        }

        var materialization: Materialization?
    }

    /// - Parameter path: a file that may be missing. One that cannot be read is reported, and the usual applies.
    init(at path: String, logger: Logger) {
        guard let data = FileManager.default.contents(atPath: path) else { return }
        do {
            self = try Configuration(text: String(decoding: data, as: UTF8.self))
        } catch {
            logger.error("'\(path)' cannot be read, and the usual applies: \(error)")
        }
    }

    /// - Throws: what is wrong with the text.
    init(text: String) throws {
        guard let section = try TOMLDecoder().decode(File.self, from: text).materialization else { return }
        if section.usualList == false { rules = MaterializationRules() }
        rules.programs += section.deny ?? []
        rules.units += section.denyUnits ?? []
        rules.exceptions += section.allow ?? []
    }
}
