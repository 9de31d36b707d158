import ArgumentParser
import Control
import FileNames

/// A command for all known domains (`--all`).
struct AllDomains {
    let daemon: DaemonConnection

    /// The domains that are not mounted and have changes, which nothing sends.
    ///
    /// - Parameter name: that of the only one that is wanted; nil for all.
    func unsent(of name: String? = nil) async throws -> [DomainSummary] {
        guard case .domains(let domains) = try await daemon.perform(.domains) else { return [] }
        return domains.filter { domain in
            if let name, !domain.name.utf8.elementsEqual(name.utf8) { return false }
            return (domain.unsent ?? 0) > 0
        }
    }

    /// Prints a line for each domain that ``unsent(of:)`` has returned.
    static func complain(aboutUnsent domains: [DomainSummary]) {
        for domain in domains {
            Output.complain(
                "\(domain.name): not mounted, and \(Output.count(domain.unsent ?? 0, "change is", "changes are")) not sent; "
                    + "'yonder mount \(ShellWord.escaped(domain.name))' mounts it")
        }
    }

    /// Performs a command for domains one after the other. A failure is printed, and the others follow.
    ///
    /// - Returns: the results, and whether none has failed.
    func perform<Value>(
        where isWanted: (DomainSummary) -> Bool, _ body: (DomainSummary) async throws -> Value
    ) async throws -> (values: [Value], isComplete: Bool) {
        let result = try await daemon.perform(.domains)
        guard case .domains(let domains) = result else { throw unexpected(result) }
        var values: [Value] = []
        var isComplete = true
        for domain in domains where isWanted(domain) {
            do {
                values.append(try await body(domain))
            } catch is ExitCode {
                // The message was printed.
                isComplete = false
            }
        }
        return (values, isComplete)
    }
}
