/// The domains in which a command has changed something.
struct ChangedDomains {
    private var hosts: [DomainHost] = []

    mutating func insert(_ host: DomainHost) {
        if !hosts.contains(where: { $0 === host }) { hosts.append(host) }
    }

    /// Returns when the kernel knows of the changes: whoever uses a name after the command means what has it now.
    func tellKernel() async {
        for host in hosts { await host.tellKernel() }
    }
}
