/// The domains that a command has changed.
struct ChangedDomains {
    private var hosts: [DomainHost] = []

    mutating func insert(_ host: DomainHost) {
        if !hosts.contains(where: { $0 === host }) { hosts.append(host) }
    }

    /// Returns when the kernel has processed the invalidations, so that names used after the command are resolved
    /// again.
    func tellKernel() async {
        for host in hosts { await host.tellKernel() }
    }
}
