import FileProvider
import Replica

/// Takes back from the remote what it has and the provider does not want any more.
extension Executor {
    /// Brings all of an item here, makes it this machine's own, and leaves it to the deletions to take it from the remote.
    /// What cannot be brought here keeps it pending: it is sent again, and refused again, later.
    func withdraw(_ sent: SentChange, _ refusal: FileProviderError) async {
        do {
            events.tell(.failed, of: sent.inode, named: sent.item.filename)
            try await commits.commit { ingestion in
                try ingestion.answers.noteAnswered(sent)
                try ingestion.refusals.noteRefusal(refusal, of: sent)
            }
            guard sent.inode != .root, !sent.item.isTrashed else { return try await postpone(sent, refusal) }
            for _ in 0..<Self.mostRounds {
                if try await commits.commit({ try $0.refusals.withdraw(sent, refusal) }) { return }
                if let missing = try await bringHere(sent.inode).first?.error {
                    if Task.isCancelled { return }
                    // A failure of the whole domain has latched it.
                    if missing.code.reaction == .latchDomain { return }
                    return try await postpone(
                        sent,
                        FileProviderError(
                            .excludedFromSync,
                            "\(refusal.message) as soon as all of it is here, and that failed: \(missing.message)"))
                }
            }
            // It is evicted repeatedly, or another client adds to it.
            try await postpone(sent, refusal)
        } catch {
            if Task.isCancelled { return }
            warnings.report("that '\(sent.item.filename)' stays on this machine cannot be recorded: \(error)")
            await pauseUnrecorded()
        }
    }

    private static let mostRounds = 3
}
