import FileProvider
import Replica
import SystemPackage

/// Commits what the provider said, and then tells the kernel what to forget and the user what was wrong.
final class Commits: Sendable {
    private let replica: Replica
    private let open: any OpenInodes
    private let kernel: any KernelCache
    private let warnings: Warnings
    private let onCommit: @Sendable () -> Void
    private let onPublish: @Sendable () -> Void
    private let onConflict: @Sendable (InodeNumber) -> Void
    private let onSomethingToSend: @Sendable () -> Void
    private let onDoubt: @Sendable ([DoubtfulContent]) -> Void
    private let versionsMayRepeat: Bool

    /// - Parameters:
    ///   - versionsMayRepeat: as the provider's features say.
    ///   - onCommit: called after each commit; returns at once.
    ///   - onConflict: called with the inode of each conflict copy; returns at once.
    ///   - onSomethingToSend: called after each transaction in which what the remote has told made something due, at once or
    ///     earlier than before; returns at once.
    ///   - onDoubt: called with the files that the remote may have written without another content version; returns at once.
    ///   - onPublish: called after each transaction whose effects are made known; returns at once.
    init(
        replica: Replica, open: any OpenInodes, kernel: any KernelCache, warnings: Warnings, versionsMayRepeat: Bool,
        onCommit: @escaping @Sendable () -> Void, onConflict: @escaping @Sendable (InodeNumber) -> Void,
        onSomethingToSend: @escaping @Sendable () -> Void,
        onDoubt: @escaping @Sendable ([DoubtfulContent]) -> Void = { _ in },
        onPublish: @escaping @Sendable () -> Void
    ) {
        self.versionsMayRepeat = versionsMayRepeat
        self.onDoubt = onDoubt
        self.onConflict = onConflict
        self.onSomethingToSend = onSomethingToSend
        self.onPublish = onPublish
        self.onCommit = onCommit
        self.replica = replica
        self.open = open
        self.kernel = kernel
        self.warnings = warnings
    }

    /// - Parameter changingNames: as ``Replica/ingest(open:changingNames:_:)`` has it.
    @discardableResult
    func commit<Value: Sendable>(
        changingNames: Bool = true, _ body: @escaping @Sendable (Ingestion) throws -> Value
    ) async throws -> Value {
        let (value, effects) = try await replica.ingest(
            open: open, changingNames: changingNames, versionsMayRepeat: versionsMayRepeat, telling: kernel, body)
        report(effects)
        onCommit()
        return value
    }

    /// Remembers what could not be done for an item, when it is the item's own: not what concerns the whole domain, nor a
    /// call that was not wanted any more.
    func recordFailure(_ failure: FileProviderError, of number: InodeNumber) async {
        switch failure.code.reaction {
        case .latchDomain, .stop: return
        case .parkItem, .changeState, .giveUpAsking, .retry: break
        }
        do {
            try await replica.recordFailure(failure, of: number)
        } catch is CancellationError {
            // It is of no interest any more.
        } catch {
            warnings.report("what failed for inode \(number) cannot be recorded: \(error)")
        }
    }

    /// Records writes to open files, which the kernel makes without a request to the daemon. A content file that cannot be examined is
    /// recorded as a failure of its item.
    func noteWrittenFiles() throws {
        for number in try replica.database.filesBeingWritten() {
            do {
                try noteWritten(number)
            } catch {
                guard let obstacle = obstacle(toExamining: number) else { throw error }
                try noteUnexamined(number, obstacle)
            }
        }
    }

    /// What keeps a content file from being examined; nil when it can be.
    private func obstacle(toExamining number: InodeNumber) -> Errno? {
        do throws(Errno) {
            _ = try replica.contentStatus(of: number)
            return nil
        } catch {
            return error
        }
    }

    private func noteUnexamined(_ number: InodeNumber, _ errno: Errno) throws {
        // Of a file that is gone nothing can be sent.
        if errno != .noSuchFileOrDirectory {
            let (_, effects) = try replica.change(open: open) { try $0.contents.noteUnexamined(number) }
            publish(effects)
        }
        let failure = FileProviderError.posix(errno, "the local content cannot be examined: \(errno)")
        // It is noted again every few seconds.
        guard try replica.database.failure(of: number)?.message != failure.message else { return }
        Task { await recordFailure(failure, of: number) }
    }

    /// Records writes to one open file.
    func noteWritten(_ number: InodeNumber) throws {
        let (_, effects) = try replica.change(open: open) { try $0.contents.compareContent(number) }
        publish(effects)
    }

    /// Makes the effects of a transaction known.
    func publish(_ effects: ReplicaEffects) {
        if !effects.invalidations.isEmpty { kernel.forget(effects) }
        report(effects)
    }

    /// As ``publish(_:)``, where the kernel has been told.
    private func report(_ effects: ReplicaEffects) {
        for defect in effects.defects { warnings.report(defect) }
        for defect in effects.endedDefects { warnings.withdraw(defect) }
        for copy in effects.conflictCopies {
            warnings.report(copy.text, of: .conflict(copy.number))
            onConflict(copy.number)
        }
        for item in effects.decoratedItems { warnings.report(all: [item.text], of: .decoratedName(item.identifier)) }
        if effects.isSomethingToSend { onSomethingToSend() }
        if !effects.doubtfulContents.isEmpty { onDoubt(effects.doubtfulContents) }
        onPublish()
    }
}
