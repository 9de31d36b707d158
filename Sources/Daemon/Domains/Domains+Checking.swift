import Control
import Replica
import SystemPackage

/// Checks of domains, mounted or not.
extension Domains {
    /// Checks domains one after the other. A mounted domain whose database must be rebuilt is unmounted meanwhile.
    func check(
        _ reference: DomainReference?, comparesContent: Bool, isRepairing: Bool
    ) async throws -> [CheckReport] {
        guard !isShuttingDown else { throw Self.shutdownError }
        let names = try reference.map { [try host(named: $0)?.name ?? $0.text] } ?? store.names()
        var reports: [CheckReport] = []
        for name in names {
            let known = try? store.domain(named: name)
            let options = hosts[name]?.options ?? known?.options ?? DomainOptions()
            let reason = await reasonToPause(options, hosts[name]?.source ?? known?.source ?? "")
            let command = DomainCheck(
                name: name, comparesContent: comparesContent, isRepairing: isRepairing, options: options,
                pause: reason, catalog: catalog, logger: logger)
            reports.append(try await check(name, command))
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
            throw Self.unknown(reference, .failed)
        }
        return nil
    }

    private func check(_ name: String, _ command: DomainCheck) async throws -> CheckReport {
        if let host = hosts[name] { return try await checkMounted(host, command) }
        let source = try store.domainOrItsRemains(named: name)?.source ?? ""
        await acquire(name)
        // Its replica must not be opened twice.
        if let host = hosts[name] {
            release(name)
            return try await checkMounted(host, command)
        }
        defer { release(name) }
        return await command.check(in: store.directory(of: name), source: source)
    }

    private func checkMounted(_ host: DomainHost, _ command: DomainCheck) async throws -> CheckReport {
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
            // It may have been unmounted since, or mounted elsewhere.
            let current = hosts[host.name]
            if let current { await stop(current) }
            await command.rebuild(in: directory, source: host.source, damage, &report)
            guard let current, !isShuttingDown else { return report }
            let arguments = MountArguments(
                source: current.source, directory: current.mountpoint.string, name: current.name)
            _ = try await begin(try request(for: arguments))
            return report
        }
    }
}
