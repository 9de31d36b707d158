import Control
import Synchronization
import Syscalls
import SystemPackage

/// What the page asks the daemon, and does with its answers.
package struct DashboardCommands: Sendable {
    /// Sends a command to the daemon; the function gets the parts of a long result. Without it, the whole result is returned.
    package typealias Performing =
        @Sendable (ControlCommand, ControlClient.PartHandler?) async throws -> ControlResult

    let perform: Performing

    struct Pending: Encodable {
        /// The first of them.
        var items: [PendingItem] = []
        var count = 0
    }

    struct Usage: Encodable {
        struct Child: Encodable {
            var path: String
            var name: String
            var kind: String
            var content: String
            var local: Int64
            var size: Int64

            init(_ entry: LocalUsage.Entry) {
                path = entry.path
                let components = entry.path.utf8.split(separator: UInt8(ascii: "/"))
                name = components.last.map { String(Substring($0)) } ?? entry.path
                kind = entry.kind ?? "file"
                content = entry.content ?? "dataless"
                local = entry.local
                size = entry.size
            }
        }

        struct Others: Encodable {
            var count: Int
            var local: Int64
            var size: Int64
        }

        var path: String
        var local: Int64
        var size: Int64
        var children: [Child]
        var others: Others
    }

    private static let mostPending = 200
    private static let mostChildren = 300

    func status() async throws -> StatusReport {
        let result = try await perform(.status(nil), nil)
        guard case .status(let report) = result else { throw Self.unexpected }
        return report
    }

    func pending() async throws -> Pending {
        let pending = Mutex(Pending())
        let add: @Sendable (ControlResult) -> Void = { part in
            guard case .pending(let items) = part else { return }
            pending.withLock { pending in
                pending.count += items.count
                pending.items += items.prefix(max(0, Self.mostPending - pending.items.count))
            }
        }
        add(try await perform(.pending(nil), add))
        return pending.withLock(\.self)
    }

    func conflicts() async throws -> [ConflictCopy] {
        guard case .conflicts(let copies) = try await perform(.conflicts(nil), nil) else { throw Self.unexpected }
        return copies
    }

    /// How much of what lies in a directory is local. Fetches nothing.
    func usage(of path: String) async throws -> Usage {
        let usage = Mutex(LocalUsage(below: path, depth: 1, showsFiles: true))
        let add: @Sendable (ControlResult) -> Void = { part in
            if case .items(let items) = part { usage.withLock { $0.add(items) } }
        }
        add(try await perform(.ls(path: path, isRecursive: true), add))
        let entries = usage.withLock(\.entries)
        // The directory itself comes first.
        let top = entries.first
        let children = entries.dropFirst().sorted { ($0.size, $1.path) > ($1.size, $0.path) }
        let others = children.dropFirst(Self.mostChildren)
        let total = LocalUsage.total(of: others)
        return Usage(
            path: path, local: top?.local ?? 0, size: top?.size ?? 0,
            children: children.prefix(Self.mostChildren).map(Usage.Child.init),
            others: Usage.Others(count: others.count, local: total.local, size: total.size))
    }

    func pause(_ domain: String) async throws { _ = try await perform(.pause(Self.reference(domain)), nil) }
    func resume(_ domain: String) async throws { _ = try await perform(.resume(Self.reference(domain)), nil) }
    func retry(_ domain: String) async throws { _ = try await perform(.retry(Self.reference(domain)), nil) }

    func download(_ path: String) async throws { try Self.check(try await perform(.download(paths: [path]), nil)) }

    func evict(_ path: String) async throws {
        try Self.check(try await perform(.evict(paths: [path], isStrict: false), nil))
    }

    /// Ends a conflict. The version that is not kept goes to the trash where the remote has one.
    ///
    /// - Parameter version: `copy`, which then gets the name of the original, or `original`.
    func resolve(copy: String, original: String, keeping version: String) async throws {
        guard version == "copy" || version == "original" else {
            throw ControlError(.usage, "'\(version)' is neither 'copy' nor 'original'")
        }
        // What the page shows may have been resolved since.
        guard try await conflicts().contains(ConflictCopy(path: copy, original: original)) else {
            throw ControlError(.failed, "the conflict exists no more", path: copy)
        }
        let keepsCopy = version == "copy"
        let hasOriginal = Self.exists(original)
        guard keepsCopy || hasOriginal else {
            throw ControlError(.failed, "the other version exists no more; this is the only one", path: copy)
        }
        let isTrashed = if hasOriginal { try await trash(keepsCopy ? original : copy) } else { false }
        if keepsCopy {
            // Without a trash the rename replaces the original in one step.
            do throws(Errno) {
                try FilePath(fileNamed: copy).move(to: FilePath(fileNamed: original))
            } catch {
                throw ControlError(.failed, "cannot be renamed to '\(original)': \(error)", path: copy)
            }
        } else if !isTrashed {
            let result = try await perform(.items(.delete(paths: [copy])), nil)
            guard case .changed(let report) = result else { throw Self.unexpected }
            try Self.check(report.refusals)
        }
    }

    /// - Returns: false where the remote has no trash, or the item is gone.
    private func trash(_ path: String) async throws -> Bool {
        let result = try await perform(.trash(.put(paths: [path])), nil)
        guard case .trash(let report) = result else { throw Self.unexpected }
        let isWithoutTrash = report.refusals.contains { $0.code == "featureUnsupported" || $0.code == "noSuchItem" }
        if !isWithoutTrash { try Self.check(report.refusals) }
        return !isWithoutTrash
    }

    /// Whether there is a file of this name. A name that cannot be examined may be one.
    private static func exists(_ path: String) -> Bool {
        do throws(Errno) {
            _ = try FileStatus(at: FilePath(fileNamed: path))
            return true
        } catch {
            return error != .noSuchFileOrDirectory
        }
    }

    private static func reference(_ domain: String) -> DomainReference {
        DomainReference(text: domain, path: domain)
    }

    private static func check(_ result: ControlResult) throws {
        guard case .transferred(let summary) = result else { throw unexpected }
        try check(summary.refusals)
    }

    private static func check(_ refusals: [Refusal]) throws {
        guard let first = refusals.first else { return }
        let more = refusals.count > 1 ? " (and \(refusals.count - 1) more)" : ""
        throw ControlError(.failed, first.reason + more, path: first.path)
    }

    private static let unexpected = ControlError(.version, "the daemon is of another version")
}
