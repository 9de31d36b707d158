import FileProvider
import Replica

/// Offers items again whose identifiers were given up.
extension Executor {
    private enum Answer {
        case change(ItemChange)
        /// Something else has the name there.
        case collision(FileProviderItem)
    }

    /// Offers an item with all that is known of it. The provider recognizes it or makes it; what it cannot recognize and
    /// is not here is gone.
    ///
    /// - Returns: whether the remote may have something now that it had not.
    func offer(_ row: Int64, transfer: UploadTransfer) async -> Bool {
        do {
            guard let sent = try replica.prepareOffer(row), let offer = sent.offer else { return false }
            if offer.isIgnored {
                _ = try await self.offer(sent, offer, recognizing: true, transfer)
                return false
            }
            if offer.isAtOrigin || offer.wasKnown && !offer.isDataless,
                try await self.offer(sent, offer, recognizing: true, transfer)
            {
                return false
            }
            // Where the remote had it, it has it no more; or the remote never had it.
            guard let sent = offer.isAtOrigin ? try replica.prepareOffer(row, atOrigin: false) : sent,
                let offer = sent.offer
            else { return false }
            _ = try await self.offer(sent, offer, recognizing: offer.isDataless, transfer)
            return !offer.isDataless
        } catch {
            if Task.isCancelled { return false }
            warnings.report("item \(row) cannot be offered again: \(error)")
            await pauseUnrecorded()
            return false
        }
    }

    /// - Parameter isOnly: whether it is to be recognized only, and not made.
    /// - Returns: false when it was not recognized, and nothing was recorded.
    private func offer(
        _ prepared: SentChange, _ offer: Offer, recognizing isOnly: Bool, _ transfer: UploadTransfer
    ) async throws -> Bool {
        if calls.isReadOnly, !isOnly {
            try await postpone(prepared, ProviderCalls.readOnlyRefusal)
            return true
        }
        var sent = prepared
        var snapshot: ContentSnapshot?
        do {
            snapshot = try await openContent(of: &sent, transfer)
            if !isOnly {
                let sending = sent
                guard try await commits.commit({ try $0.answers.noteSent(sending) }) else { return true }
            }
            let answer = try await call(sent, snapshot?.source, isOnly: isOnly, transfer)
            return try await record(answer, of: sent, offer, wasOnly: isOnly)
        } catch {
            if offer.isAtOrigin, try isGone(sent.item.parentItemIdentifier, error) { return false }
            await failed(sent, error)
            return true
        }
    }

    /// Whether a call has failed because the remote has no such directory, and it is known here no more: nothing is to come of it.
    private func isGone(_ directory: ItemIdentifier, _ error: any Error) throws -> Bool {
        guard ProviderCalls.failure(from: error).code == .noSuchItem else { return false }
        return try replica.database.item(directory) == nil
    }

    private func call(
        _ sent: SentChange, _ source: ContentSource?, isOnly: Bool, _ transfer: UploadTransfer
    ) async throws -> Answer {
        let (request, sending) = (request, told(sent))
        var options: CreateItemOptions = [.mayAlreadyExist, .keepExisting]
        if isOnly { options.insert(.recognizeOnly) }
        let wanted = options
        do {
            return .change(
                try await make(.createItem, transfer, recognizesOnly: isOnly) { provider in
                    try await provider.createItem(
                        basedOn: sending, fields: sent.fields, contents: source, options: wanted, request: request)
                })
        } catch let error as FileProviderError {
            guard error.code == .filenameCollision else { throw error }
            if let there = error.item { return .collision(there) }
            guard let there = try await item(named: sent.item.filename, in: sent.item.parentItemIdentifier) else {
                throw FileProviderError(
                    .cannotSynchronize, "the remote says that '\(sent.item.filename)' is taken, and shows nothing there"
                )
            }
            return .collision(there)
        }
    }

    private func record(
        _ answer: Answer, of sent: SentChange, _ offer: Offer, wasOnly: Bool
    ) async throws -> Bool {
        switch answer {
        case .change(.refused) where offer.isIgnored:
            try await commits.commit { try $0.refusals.keepIgnored(sent) }
        case .change(.refused(let reason)):
            guard wasOnly else {
                try await postpone(sent, FileProviderError(.cannotSynchronize, reason))
                return true
            }
            if offer.isAtOrigin || !offer.isDataless { return false }
            guard try await commits.commit({ try $0.offers.loseOffered(sent, offer) }) else { return true }
            events.tell(.lost, of: nil, named: sent.item.filename)
        case .change(.applied(let item, let answered, let shouldFetchContent)):
            let stillPending = answered.union(withheld(from: sent))
            if let failure = Self.malformed(item) {
                try await postpone(sent, failure)
                return true
            }
            try await commits.commit { ingestion in
                try ingestion.offers.acknowledgeOffer(
                    sent, offer, as: item, stillPending: stillPending, isSameContent: !shouldFetchContent)
            }
            events.tell(.reimported, of: sent.inode, named: item.filename)
        case .collision(let there):
            // Where it was something else is now: where it is, it may be made.
            if offer.isAtOrigin, there.kind != sent.item.kind { return false }
            let label = conflictLabel()
            let isOwn = try await sent.isReplay ? isOwn(there, sent) : false
            try await commits.commit {
                try $0.offers.resolveOffer(sent, offer, against: there, isOwn: isOwn, label: label)
            }
            events.tell(.reimported, of: sent.inode, named: there.filename)
        }
        return true
    }

    /// Finds what was removed here on the remote, where its identifier is known no more. Something else of its name is
    /// left alone. The provider rejects the deletion later if the file has other content.
    func find(_ deletion: PendingDeletion) async throws {
        let found = try await item(named: deletion.name, in: deletion.parent)
        guard var found, found.kind == deletion.kind.itemKind else {
            return try await commits.commit { ingestion in
                guard try ingestion.offers.isStillSought(deletion) else { return }
                try ingestion.offers.notFoundDeleted(deletion)
            }
        }
        var isIt = found.kind != .file || found.itemVersion.contentVersion == deletion.version.contentVersion
        if !isIt { isIt = try await isOwn(found, deletion) }
        if !isIt, !deletion.version.contentVersion.isEmpty {
            // Two versions may stand for one content: the provider decides whether this is what was removed, as for any deletion.
            found.itemVersion.contentVersion = deletion.version.contentVersion
            isIt = true
        }
        let item = found
        if isIt {
            try await commits.commit { ingestion in
                guard try ingestion.offers.isStillSought(deletion) else { return }
                try ingestion.offers.foundDeleted(deletion, as: item)
            }
        } else {
            let path = path(of: deletion)
            let staysThere = try await commits.commit { ingestion in
                guard try ingestion.offers.isStillSought(deletion) else { return false }
                try ingestion.offers.notFoundDeleted(deletion)
                try ingestion.conflicts.bringBack(deletion, as: item)
                return true
            }
            guard staysThere else { return }
            warnings.report("'\(path)' was removed here and has changed on the remote: it stays")
        }
    }
}
