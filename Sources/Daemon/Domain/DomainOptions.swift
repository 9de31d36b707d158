import Control
import Foundation
import Sync

/// How a domain is mounted: what the user said when it was added, kept with it.
package struct DomainOptions: Codable, Hashable, Sendable {
    /// How many bytes of content may be here; nil for no limit.
    package var cacheLimit: Int64?
    /// How often to look for changes, in seconds; nil for what suits the provider.
    package var pollSeconds: Double?
    package var isReadOnly = false
    /// How long content is kept that nobody opens, in seconds; nil for ever.
    package var cacheSeconds: Double?
    /// Whether `fsync` returns only when the remote has what was written; nil for not.
    package var waitsForRemote: Bool?
    /// Names that are never sent, beside those of the configuration.
    package var ignoredNames: [String]?
    /// Where an object store is, as far as the source does not say so.
    package var objectStore: ObjectStoreOptions?

    package init() {}

    /// These options, where a command says nothing else.
    func merging(_ arguments: MountArguments) -> DomainOptions {
        var options = self
        if let limit = arguments.cacheLimit { options.cacheLimit = limit.value }
        if let seconds = arguments.pollSeconds { options.pollSeconds = seconds.value }
        if let isReadOnly = arguments.isReadOnly { options.isReadOnly = isReadOnly }
        if let age = arguments.cacheSeconds { options.cacheSeconds = age.value }
        if let waits = arguments.waitsForRemote { options.waitsForRemote = waits }
        if let names = arguments.ignoredNames { options.ignoredNames = names }
        if let place = arguments.objectStore { options.objectStore = place.merging(options.objectStore) }
        return options
    }

    var cacheLimits: CacheLimits { CacheLimits(bytes: cacheLimit, age: cacheSeconds.map { .fromOutside(seconds: $0) }) }

    /// - Parameter feeds: whether the provider tells of changes by itself.
    func polling(wherever feeds: Bool) -> Polling {
        pollSeconds.map { .every(max(.seconds(1), .fromOutside(seconds: $0))) } ?? (feeds ? .never : .adaptive)
    }

    /// Options as they were stored; the usual ones where nothing is, or nothing that can be read.
    init(json: String?) {
        let stored = json.flatMap { try? JSONDecoder().decode(DomainOptions.self, from: Data($0.utf8)) }
        self = stored ?? DomainOptions()
    }

    var json: String {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

extension Duration {
    /// A number of seconds from a command or from stored options: at least none, and at most a hundred years. `Duration`
    /// ends the process for a number that it cannot hold.
    static func fromOutside(seconds: Double) -> Duration {
        .seconds(seconds.isNaN ? 0 : max(0, min(seconds, 100 * 366 * 86_400)))
    }
}
