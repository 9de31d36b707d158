import Control
import FileProvider
import Replica
import Sync
import SystemPackage

/// Executes the commands about pending changes.
struct PendingCommands: Sendable {
    let domains: Domains
    let progress: @Sendable (ControlEvent) -> Void
    let part: @Sendable (ControlResult) async throws -> Void

    func perform(_ command: ControlCommand) async throws -> ControlResult {
        switch command {
        case .pending(let reference):
            for host in try await domains.hosts(reference) {
                try await PendingReporter(host: host).list { try await part(.pending($0)) }
            }
            return .pending([])
        case .conflicts(let reference):
            var conflicts: [ConflictCopy] = []
            for host in try await domains.hosts(reference) { conflicts += try PendingReporter(host: host).conflicts() }
            return .conflicts(conflicts)
        case .wait(let reference, let seconds, let downloads):
            let deadline = seconds.map { ContinuousClock.now + .fromOutside(seconds: $0) }
            for host in try await domains.hosts(reference) {
                let left = deadline.map { max(.zero, $0 - .now) }
                if let below = try await inode(below: reference, in: host) {
                    guard try await host.engine.waitUntilSynced(below: below, within: left) else { return .timedOut }
                } else {
                    guard try await host.engine.waitUntilSynced(within: left, downloads: downloads) else {
                        return .timedOut
                    }
                }
                // The remote's answers may have renamed items.
                await host.tellKernel()
            }
            return .done
        case .retry(let reference):
            try await retry(reference)
            return .done
        case .pause(let reference):
            try await domains.pause(true, reference)
            return .done
        case .resume(let reference):
            try await domains.pause(false, reference)
            return .done
        case .events(let reference):
            try await follow(domains.hosts(reference))
            return .done
        default:
            throw ControlError(.failed, "no command about what is pending")
        }
    }

    /// A path below the mount point selects that item alone.
    private func retry(_ reference: DomainReference?) async throws {
        for host in try await domains.hosts(reference) {
            try await host.engine.retry(try await inode(below: reference, in: host))
        }
    }

    /// The selected item; nil for the whole domain.
    private func inode(below reference: DomainReference?, in host: DomainHost) async throws -> InodeNumber? {
        guard let reference, host.name != reference.text, host.mountpoint.string != reference.path else { return nil }
        return try await PathResolver(host: host).inode(at: reference.path).number
    }

    private func follow(_ hosts: [DomainHost]) async throws {
        await withTaskGroup(of: Void.self) { group in
            for host in hosts {
                group.addTask { [progress] in
                    let resolver = PathResolver(host: host)
                    for await event in host.engine.events {
                        let path = event.number.flatMap { resolver.path(of: $0) } ?? event.name
                        progress(
                            ControlEvent(
                                path: path, items: 1, bytes: event.bytes, kind: event.kind.rawValue,
                                time: Timestamp.text(event.time), process: event.process))
                    }
                }
            }
        }
    }
}
