import FileProvider
import Replica

/// The beginning and the end of synchronization, and the limits that may change in between.
extension SyncEngine {
    /// Begins to look for changes. Returns at once.
    package func start() {
        guard !isInteractive else { return }
        guard (try? replica.database.reimports.asked().isEmpty) == false else { return startParts() }
        Task {
            // Before anything is compared: what has other identifiers on the remote would count as deleted.
            await beginAskedReimports()
            startParts()
        }
    }

    private func startParts() {
        warningStore.start()
        schedule.run(
            compare: { [feed] in await feed.compareOnly($0) }, compareNoted: { [feed] in await feed.compareNoted() },
            refresh: { [feed, trashTidier] () async throws(FileProviderError) -> Void in
                defer { trashTidier.wake() }
                try await feed.refresh()
            })
        schedule.refresh()
        root.start()
        quota.ask()
        Task {
            await retryWhatWasReadOnly()
            await uploads.start()
            await reimports.start()
            if hasTrash { trashTidier.start() }
            await materializer.start()
            await doubts.start()
            await documents.start()
            if calls.provider.features.followsLocalSets {
                for notifier in notifiers { await notifier.start() }
            }
            await budget.start(evictor: downloads)
            contentSyncer.start()
        }
    }

    /// A domain that was read-only when it was mounted last may be written again: what was refused for that is tried now.
    private func retryWhatWasReadOnly() async {
        do {
            let wasReadOnly = try replica.database.value(of: .wasReadOnly) != nil
            guard wasReadOnly != isReadOnly else { return }
            if wasReadOnly { try await commits.commit { try $0.answers.retryNow(nil) } }
            try replica.database.set(.wasReadOnly, to: isReadOnly ? "1" : nil)
        } catch {
            warnings.report("whether the domain is read-only cannot be recorded: \(error)")
        }
    }

    /// Content is transferred at other rates from now on.
    package func keep(to limits: TransferLimits) {
        calls.traffic.sending.rate = limits.up
        calls.traffic.receiving.rate = limits.down
    }

    /// Other limits hold from now on.
    package func keep(to limits: CacheLimits) async {
        await filePrefetcher.keep(to: limits.bytes)
        await budget.keep(to: limits, evictor: downloads)
    }

    /// Looks for changes in another way from now on.
    package func poll(_ polling: Polling) {
        schedule.change(to: polling)
        signal()
    }

    /// Ends everything that is under way and keeps what is here. Waits for the provider only as long as `patience`,
    /// and a moment after it was cancelled.
    package func stop(patience: Duration = .seconds(2)) async {
        schedule.stop()
        root.stop()
        context.events.finish()
        early?.stop()
        await uploads.stop(patience: patience)
        await reimports.stop()
        trashTidier.stop()
        await materializer.stop()
        await doubts.stop()
        await budget.stop()
        for notifier in notifiers { notifier.stop() }
        await documents.stop()
        quota.stop()
        await listingRetries.stop()
        await directoryPrefetcher.stop()
        await filePrefetcher.stop()
        await feed.stop()
        await listings.stop()
        await downloads.stopAll()
        await accessTimes.write()
        await contentSyncer.stop()
        await closedFiles.stop()
        await warningStore.stop()
        await calls.provider.invalidate(within: patience)
    }
}
