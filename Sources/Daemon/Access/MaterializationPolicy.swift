import Logging
import Synchronization

/// Decides which processes may cause fetches. Local content is readable by every process.
package final class MaterializationPolicy: Sendable {
    private let rules: MaterializationRules
    package let budget: FetchBudget
    private let logger: Logger
    /// By process number. A decision is valid while the process runs the same program.
    private let decisions = Mutex<
        [Int32: (identity: ObservedProcess.Identity, refusal: MaterializationRules.Refusal?)]
    >([:])
    private static let mostDecisions = 4096
    /// The programs that were refused, and why: each is reported once.
    private let reported = Mutex<Set<[String]>>([])

    /// - Parameter processBudget: the fetch budget per process in bytes; nil for no limit.
    package init(rules: MaterializationRules, processBudget: Int64? = nil, logger: Logger) {
        self.rules = rules
        budget = FetchBudget(limit: processBudget, exceptions: rules, logger: logger)
        self.logger = logger
    }

    /// The reason why a process may not cause fetches; nil if it may. Reads /proc: must not be called on a serving
    /// thread.
    func refusal(of process: Int32?) -> MaterializationRules.Refusal? {
        guard let process, let observed = ObservedProcess(process) else { return nil }
        let identity = observed.identity
        let known = decisions.withLock { $0[process] }
        if let known, known.identity == identity { return known.refusal }
        let refusal =
            observed.isMarked
            ? MaterializationRules.Refusal(reason: "it was started with 'yonder run --no-materialize'")
            : rules.refusal(of: observed.subject)
        decisions.withLock { decisions in
            if decisions.count >= Self.mostDecisions { decisions.removeAll() }
            decisions[process] = (identity, refusal)
        }
        if let refusal { report(observed.name ?? "?", process, refusal.reason) }
        return refusal
    }

    /// A file manager starts a thumbnailer for each picture: one line tells of all of them.
    private func report(_ name: String, _ process: Int32, _ refusal: String) {
        let isNew = reported.withLock { reported in
            reported.count < Self.mostDecisions && reported.insert([name, refusal]).inserted
        }
        guard isNew else { return }
        logger.notice(
            "'\(name)' (pid \(process)) downloads nothing: \(refusal). Of other processes of this name that is not said again."
        )
    }
}
