import Control
import Foundation
import Mount
import ProviderDescriptors
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// The options of a domain, stored with it.
package struct DomainOptions: Codable, Hashable, Sendable {
    /// The cache limit in bytes; nil for none.
    package var cacheLimit: Int64?
    /// The polling interval in seconds; nil for the provider's default.
    package var pollSeconds: Double?
    package var isReadOnly = false
    /// The time in seconds after which unused content is evicted; nil for never.
    package var cacheSeconds: Double?
    /// Whether `fsync` returns only after the upload; nil for false.
    package var waitsForRemote: Bool?
    /// Name patterns that are excluded from sync, in addition to those of the configuration.
    package var ignoredNames: [String]?
    /// The options of the remote, by the names in its descriptor; nil for none. Contains no secrets.
    package var remote: [String: String]?
    /// Whether the provider is not called until `yonder resume`; nil for false.
    package var isPaused: Bool?
    /// Whether other users may access the mount, subject to modes and owners; nil for false.
    package var allowsOthers: Bool?
    /// Whether device files in the mount can be opened; nil for false.
    package var allowsDevices: Bool?
    /// Whether set-user-ID and set-group-ID bits and file capabilities in the mount are honoured; nil for false.
    package var allowsSetID: Bool?
    /// The owner of items that have none of their own; nil for the user of the daemon.
    package var user: UInt32?
    /// Their group; nil for that of the daemon.
    package var group: UInt32?
    /// The permissions that items without permissions of their own do not get; nil for 022.
    package var umask: UInt16?
    /// The most content bytes a second to the remote; nil for no limit.
    package var upRate: Int64?
    /// The most content bytes a second from the remote; nil for no limit.
    package var downRate: Int64?
    /// Whether the domain is paused while the network connection is metered; nil for false.
    package var pausesWhileMetered: Bool?

    package init() {}

    /// These options, with those that a command has set.
    func merging(_ arguments: MountArguments) -> DomainOptions {
        var options = self
        if let limit = arguments.cacheLimit { options.cacheLimit = limit.value }
        if let seconds = arguments.pollSeconds { options.pollSeconds = seconds.value }
        if let isReadOnly = arguments.isReadOnly { options.isReadOnly = isReadOnly }
        if let age = arguments.cacheSeconds { options.cacheSeconds = age.value }
        if let waits = arguments.waitsForRemote { options.waitsForRemote = waits }
        if let names = arguments.ignoredNames { options.ignoredNames = names }
        if let allowsOthers = arguments.allowsOthers { options.allowsOthers = allowsOthers ? true : nil }
        if let allowsDevices = arguments.allowsDevices { options.allowsDevices = allowsDevices ? true : nil }
        if let allowsSetID = arguments.allowsSetID { options.allowsSetID = allowsSetID ? true : nil }
        if let user = arguments.user { options.user = user.value }
        if let group = arguments.group { options.group = group.value }
        if let umask = arguments.umask { options.umask = umask.value }
        if let rate = arguments.upRate { options.upRate = rate.value }
        if let rate = arguments.downRate { options.downRate = rate.value }
        if let pauses = arguments.pausesWhileMetered { options.pausesWhileMetered = pauses ? true : nil }
        if let given = arguments.remote {
            let all = (options.remote ?? [:]).merging(given) { $1 }.filter { !$0.value.isEmpty }
            options.remote = all.isEmpty ? nil : all
        }
        return options
    }

    var ownership: Ownership {
        Ownership(
            user: user ?? Machine.userIdentifier, group: group ?? Machine.groupIdentifier, umask: umask ?? 0o022)
    }

    var mountRights: MountRights {
        MountRights(
            allowsOthers: allowsOthers ?? false, allowsDevices: allowsDevices ?? false,
            allowsSetID: allowsSetID ?? false)
    }

    /// Verifies that this user may grant the rights of the options.
    ///
    /// - Throws: `notPermitted` with instructions.
    func checkRights(of name: String) throws(ControlError) {
        if mountRights.allowsDevices || mountRights.allowsSetID, Machine.userIdentifier != 0 {
            throw ControlError(
                .notPermitted,
                "--dev and --suid are for mounts by root: device files and set-user-ID programs of a remote would give "
                    + "you the rights of others; mount as root, or with --no-dev --no-suid", path: name)
        }
        guard mountRights.allowsOthers, !MountRights.canAllowOthers else { return }
        throw ControlError(
            .notPermitted,
            "--allow-other is for root, unless /etc/fuse.conf has a line 'user_allow_other'; ask for that, or mount with "
                + "--no-allow-other", path: name)
    }

    var cacheLimits: CacheLimits { CacheLimits(bytes: cacheLimit, age: cacheSeconds.map { .fromOutside(seconds: $0) }) }

    var transferLimits: TransferLimits { TransferLimits(up: upRate, down: downRate) }

    /// Whether a domain with this source waits while the network connection is metered.
    func avoidsMeteredConnection(to source: String) -> Bool {
        pausesWhileMetered == true && ProviderDescriptor.serving(source)?.usesNetwork != false
    }

    /// - Parameter feeds: whether the provider reports changes itself.
    func polling(wherever feeds: Bool) -> Polling {
        pollSeconds.map { .every(max(.seconds(1), .fromOutside(seconds: $0))) } ?? (feeds ? .never : .adaptive)
    }

    /// Decodes stored options; the defaults if there are none or they cannot be read.
    init(json: String?) {
        let stored = json.flatMap { try? JSONDecoder().decode(DomainOptions.self, from: Data($0.utf8)) }
        self = stored ?? DomainOptions()
    }

    /// In one order always: equal options are one text.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

extension DomainOptions {
    /// Stores the options in the replica's database and in the sidecar file beside it.
    func keep(
        in replica: Replica, of source: String, on mountpoint: String?, _ directory: FilePath
    ) throws {
        try replica.database.set(.options, to: json)
        let sidecar = DomainSidecar(source: source, mountpoint: mountpoint, options: json)
        // An unchanged file is not rewritten, so that this also works on a full disk.
        guard DomainSidecar(in: directory) != sidecar else { return }
        try replica.database.withReserve { try sidecar.write(in: directory) }
    }
}

extension Duration {
    /// Seconds from a command or from stored options, clamped to 0 to 100 years. `Duration` traps on a value that it
    /// cannot represent.
    static func fromOutside(seconds: Double) -> Duration {
        .seconds(seconds.isNaN ? 0 : max(0, min(seconds, 100 * 366 * 86_400)))
    }
}
