import Control
import Replica
import Sync
import Syscalls
import SystemPackage

extension Domains {
    /// Checks domains one after the other. A mounted domain whose database must be rebuilt is unmounted meanwhile.
    func check(
        _ reference: DomainReference?, comparesContent: Bool, isRepairing: Bool
    ) async throws -> [CheckReport] {
        guard !isShuttingDown else { throw Self.shutdownError }
        let names = try reference.map { [try host(named: $0)?.name ?? $0.text] } ?? store.names()
        var reports: [CheckReport] = []
        for name in names {
            let report = try await check(name, comparesContent: comparesContent, isRepairing: isRepairing)
            if let report {
                reports.append(report)
            } else if let reference {
                throw unknownDomain(reference, .failed)
            }
        }
        return reports
    }

    private func host(named reference: DomainReference) throws(ControlError) -> DomainHost? {
        if let host = name(of: reference).flatMap({ hosts[$0] }) { return host }
        let known: DomainStore.Known?
        do {
            known = try store.domainOrItsRemains(named: reference.text)
        } catch {
            throw ControlError(.failed, "its database cannot be read: \(error)", path: reference.text)
        }
        guard known != nil else {
            throw unknownDomain(reference, .failed)
        }
        return nil
    }

    /// - Returns: nil for a domain that is not known, as one that was removed while this waited.
    private func check(_ name: String, comparesContent: Bool, isRepairing: Bool) async throws -> CheckReport? {
        func command(_ options: DomainOptions, pause: Connection.Pause? = nil) -> DomainCheck {
            DomainCheck(
                name: name, comparesContent: comparesContent, isRepairing: isRepairing, options: options,
                pause: pause, catalog: catalog, logger: logger)
        }
        if let host = hosts[name] { return try await checkMounted(host, command(host.options)) }
        // Its replica must not be opened twice.
        await acquire(name)
        if let host = hosts[name] {
            release(name)
            return try await checkMounted(host, command(host.options))
        }
        defer { release(name) }
        guard let known = try store.domainOrItsRemains(named: name) else { return nil }
        let pause = await reasonToPause(known.options, known.source)
        return await command(known.options, pause: pause).check(in: store.directory(of: name), source: known.source)
    }

    private func checkMounted(_ host: DomainHost, _ command: DomainCheck) async throws -> CheckReport? {
        do {
            return try await command.check(host)
        } catch let damage as ReplicaDamage {
            var report = CheckReport(name: host.name)
            let directory = store.directory(of: host.name)
            guard command.isRepairing else {
                await command.rebuild(in: directory, source: host.source, damage, &report)
                return report
            }
            await acquire(host.name)
            defer { release(host.name) }
            // It may have been unmounted since, mounted elsewhere or removed.
            let current = hosts[host.name]
            if let current {
                await stop(current)
            } else if try store.domainOrItsRemains(named: host.name) == nil {
                return nil
            }
            await command.rebuild(in: directory, source: host.source, damage, &report)
            guard let current, !isShuttingDown else { return report }
            let arguments = MountArguments(
                source: current.source, directory: current.mountpoint.fileNameText, name: current.name)
            _ = try await begin(try request(for: arguments, named: current.name))
            return report
        }
    }
}
