import Logging
import Synchronization
import Syscalls

/// Decides which processes may have something fetched. What is here everybody may have.
package final class MaterializationPolicy: Sendable {
    private let rules: MaterializationRules
    /// How much each process may have fetched.
    package let budget: FetchBudget
    private let logger: Logger
    /// By process number; a decision is one process's, as long as it runs the same program.
    private let decisions = Mutex<[Int32: (identity: ObservedProcess.Identity, refusal: String?)]>([:])
    private static let mostDecisions = 4096

    /// - Parameter processBudget: how many bytes a process may have fetched by reading; nil for as many as it likes.
    package init(rules: MaterializationRules, processBudget: Int64? = nil, logger: Logger) {
        self.rules = rules
        budget = FetchBudget(limit: processBudget, exceptions: rules, logger: logger)
        self.logger = logger
    }

    /// Why a process may have nothing fetched; nil for one that may. Reads /proc: not for the kernel's threads.
    package func refusal(of process: Int32?) -> String? {
        guard let process, let observed = ObservedProcess(process) else { return nil }
        let identity = observed.identity
        let known = decisions.withLock { $0[process] }
        if let known, known.identity == identity { return known.refusal }
        let name = observed.name
        let refusal =
            observed.isMarked
            ? "it was started with 'yonder run --no-materialize'"
            : rules.refusal(executable: identity.executable, name: name, controlGroup: observed.controlGroup)
        let isNew = decisions.withLock { decisions in
            if decisions.count >= Self.mostDecisions { decisions.removeAll() }
            let last = decisions.updateValue((identity, refusal), forKey: process)
            return last?.identity != identity
        }
        if let refusal, isNew {
            logger.notice("'\(name ?? "?")' (pid \(process)) downloads nothing: \(refusal)")
        }
        return refusal
    }
}
