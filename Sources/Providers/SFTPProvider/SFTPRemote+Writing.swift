import FileNames
import FileProvider
import FileProviderPaths
import Synchronization

extension SFTPRemote {
    /// A server with less space than this has refused a write because it is full.
    private static let leastSpace: Int64 = 2 << 20

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await connection.changing { session in
            let stored = SFTPAttributes(attributes)
            // A file that was sent early has a mode already, and is found only while its directory has the same path.
            let early = try await contents.finishEarlyUpload {
                stored.permissions != nil && storesAttributes.load(ordering: .relaxed)
                    && $0.hidden.parent == path.parent
            }
            let hidden = early ?? path.parent.appending(HiddenName.make())
            do {
                let (entry, last) =
                    if early != nil {
                        try await complete(hidden, named: path, contents.size, stored, session)
                    } else {
                        try await writing(to: [path.parent], session) {
                            try await upload(contents, to: hidden, named: path, stored, if: condition, session)
                        }
                    }
                readFiles.close(at: path)
                var looked: SFTPRequest? = last
                try await writing(to: [path.parent], session) {
                    // The second time, others may have written since.
                    let look = looked ?? lookup(path, session)
                    looked = nil
                    try await place(hidden, at: path, if: condition, look, session)
                }
                return entry
            } catch {
                // While the hidden file still takes its space.
                let failure = await explained(error, session)
                removeHidden(hidden, session)
                throw failure
            }
        }
    }

    /// Removes a hidden file. Returns at once, also when the caller was cancelled. What a broken connection leaves is removed over
    /// other ones.
    func removeHidden(_ hidden: RemotePath, _ session: SFTPSession) {
        let name = bytes(hidden)
        let first = session.send(SFTPMessage.remove, [name])
        Task { [weak self] in
            do {
                try await self?.writing(
                    to: [hidden.parent], session, first: { try await first.reply().checkStatus() }
                ) { try await session.request(SFTPMessage.remove, [name]).checkStatus() }
            } catch  where !session.isOpen {
                self?.repeating(in: hidden.parent) { _, session in
                    try await session.request(SFTPMessage.remove, [name]).checkStatus()
                }
            }
        }
    }

    /// Repeats with the next connections what a broken one has interrupted in a directory. Returns at once.
    func repeating(
        in directory: RemotePath, _ body: @escaping @Sendable (SFTPRemote, SFTPSession) async throws -> Void
    ) {
        Task { [weak self] in
            for pause in Self.pausesBeforeRepeating {
                try await Task.sleep(for: pause)
                guard let self else { return }
                do {
                    return try await connection.changing { session in
                        try await writing(to: [directory], session) { try await body(self, session) }
                    }
                } catch is RemoteConditionFailure {
                    return
                } catch let error as FileProviderError where error.code == .noSuchItem {
                    return
                } catch {
                    continue
                }
            }
        }
    }

    private static let pausesBeforeRepeating: [Duration] = [
        .milliseconds(100), .seconds(5), .seconds(60), .seconds(600),
    ]

    /// The error of a change that failed: the protocol has no status for a full disk.
    func explained(_ error: any Error, _ session: SFTPSession) async -> any Error {
        guard let status = error as? SFTPStatus, status.code == SFTPStatus.failure else { return error }
        // In the words of `strerror(3)` on servers that send them.
        var isFull = ["No space left", "quota exceeded"].contains { status.message.contains($0) }
        if let statistics = try? await statistics(session) {
            isFull = isFull || statistics.freeItems == 0 || statistics.free < Self.leastSpace
        }
        return isFull ? FileProviderError(.insufficientQuota, "the server's disk is full") : error
    }

    /// - Throws: ``RemoteConditionFailure`` when the condition does not hold.
    func check(_ condition: RemoteCondition, _ path: RemotePath, _ session: SFTPSession) async throws {
        try await check(condition, path, lookup(path, session), session)
    }

    func check(
        _ condition: RemoteCondition, _ path: RemotePath, _ look: SFTPRequest, _ session: SFTPSession
    ) async throws {
        guard condition != .always, condition != .empty else { return }
        let there = try await presentIfAny(path, look, session)
        if case .unchanged(let tag) = condition, let there, there.kind == .file, there.tag == tag { return }
        if condition == .absent, there == nil { return }
        throw RemoteConditionFailure(present: there)
    }

    /// Uploads to a hidden file. What does not depend on a response is sent without waiting for it.
    ///
    /// - Returns: the entry, and the lookup of the path that was sent last.
    private func upload(
        _ contents: ContentSource, to hidden: RemotePath, named path: RemotePath, _ stored: SFTPAttributes,
        if condition: RemoteCondition, _ session: SFTPSession
    ) async throws -> (entry: RemoteEntry, last: SFTPRequest) {
        let look = lookup(path, session)
        // Write, create, and refuse an existing one. Its content is not for others before it has its mode, if it gets it later.
        let mask: UInt32 = storesAttributes.load(ordering: .relaxed) ? 0o600 : 0o7777
        let handle = try await open(hidden, 0x02 | 0x08 | 0x20, stored.permissions.map { $0 & mask }, session)
        // The server may give the number of a closed handle to another file.
        var isClosed = false
        do {
            try await check(condition, path, look, session)
            let lanes = SFTPLanes(SFTPLane(session: session, handle: handle))
            var writes: ArraySlice<SFTPRequest> = []
            var position: Int64 = 0
            let next: () async throws -> [UInt8]? = {
                guard position < contents.size else { return nil }
                let (start, count) = (position, min(session.pieceLength, contents.size - position))
                position += count
                try await contents.pace(count)
                return try await BlockingWork.run { try contents.read(at: start, count: Int(count)) }
            }
            if contents.size < SFTPBulkConnections.largeSize {
                writes = try await send(next, on: lanes)
            } else {
                try await sendWide(next, to: hidden, on: lanes)
            }
            try contents.confirm()
            let flushed = flush(lanes.first)
            // Servers that write in parallel finish before they close. Attributes come after that: a write sets the time.
            let closed = session.send(SFTPMessage.close, [handle])
            isClosed = true
            let attributes = storeAndLook(stored, hidden, session)
            let last = lookup(path, session)
            for request in writes { try await request.reply().checkStatus() }
            try await waitForFlush(flushed, session)
            try await closed.reply().checkStatus()
            return (try await entry(hidden, named: path, contents.size, stored, attributes, session), last)
        } catch {
            if !isClosed { session.closeHandle(handle) }
            throw error
        }
    }

    /// Stores the attributes of a hidden file that was sent early.
    ///
    /// - Returns: as ``upload(_:to:named:_:if:_:)``.
    private func complete(
        _ hidden: RemotePath, named path: RemotePath, _ size: Int64, _ stored: SFTPAttributes, _ session: SFTPSession
    ) async throws -> (entry: RemoteEntry, last: SFTPRequest) {
        let attributes = storeAndLook(stored, hidden, session)
        let last = lookup(path, session)
        return (try await entry(hidden, named: path, size, stored, attributes, session), last)
    }

    /// The entry of a hidden file whose content has arrived.
    ///
    /// - Parameter attributes: the requests that store and look up its attributes.
    private func entry(
        _ hidden: RemotePath, named path: RemotePath, _ size: Int64, _ stored: SFTPAttributes,
        _ attributes: (stored: SFTPRequest?, look: SFTPRequest), _ session: SFTPSession
    ) async throws -> RemoteEntry {
        var entry = try await entry(attributes, path)
        let seconds = entry.attributes.contentModificationDate?.seconds
        let isDated = stored.modified == nil || stored.modified.map(Int64.init) == seconds
        if entry.size != size || !isDated && storesAttributes.load(ordering: .relaxed) {
            // A server that did not keep the order has finished by now.
            entry = try await self.entry(storeAndLook(stored, hidden, session), path)
        }
        guard entry.size == size else {
            throw FileProviderError(.malformedResponse, "what arrived is not what was sent")
        }
        return entry
    }

    func open(
        _ path: RemotePath, _ flags: UInt32, _ permissions: UInt32?, _ session: SFTPSession
    ) async throws -> [UInt8] {
        try await session.request(SFTPMessage.open, [bytes(path)]) {
            $0.append(flags)
            SFTPAttributes(permissions: permissions).write(to: &$0)
        }.handle()
    }

    /// Asks the server to write a file to its disk, if it can.
    func flush(_ lane: SFTPLane) -> SFTPRequest? {
        guard lane.session.has("fsync@openssh.com") else { return nil }
        return lane.session.send(SFTPMessage.extended, [Array("fsync@openssh.com".utf8), lane.handle], isFlush: true)
    }

    /// - Parameter request: what ``flush(_:)`` has sent.
    func waitForFlush(_ request: SFTPRequest?, _ session: SFTPSession) async throws {
        do {
            try await request?.reply().checkStatus()
        } catch let status as SFTPStatus where status.code == SFTPStatus.unsupported {
            session.forgetExtension("fsync@openssh.com")
        }
    }

    /// Sends a file's content over several connections, and waits for the responses.
    func sendWide(
        _ next: () async throws -> [UInt8]?, to hidden: RemotePath, on lanes: SFTPLanes
    ) async throws {
        try await bulk.widen(lanes) { [self] session in
            SFTPLane(session: session, handle: try await open(hidden, 0x02, nil, session))
        } closeLane: {
            $0.close()
        } _: {
            for request in try await send(next, on: lanes) { try await request.reply().checkStatus() }
        }
    }

    /// Sends a file's content, each piece on the lane with the most place.
    ///
    /// - Parameter next: the pieces, in order; nil at the end.
    /// - Returns: the requests that are still in flight. They are all on the first lane if there is no other.
    private func send(
        _ next: () async throws -> [UInt8]?, on lanes: SFTPLanes
    ) async throws -> ArraySlice<SFTPRequest> {
        var inFlight: ArraySlice<(count: Int64, lane: Int, request: SFTPRequest)> = []
        func finishOne() async throws {
            guard let piece = inFlight.popFirst() else { return }
            do {
                try await piece.request.reply().checkStatus()
            } catch  where piece.lane > 0 && !Task.isCancelled {
                // The write may still be applied, and would give the file another time: the upload has to start again.
                await bulk.pause()
                throw error
            }
            lanes.give(back: piece.count, to: piece.lane)
        }
        var start: Int64 = 0
        while let bytes = try await next() {
            try Task.checkCancellation()
            let count = Int64(bytes.count)
            var place = lanes.take(count)
            while place == nil {
                try await finishOne()
                place = lanes.take(count)
            }
            guard let (index, lane) = place else { continue }
            inFlight.append((count, index, lane.write(bytes, start)))
            start += count
        }
        while inFlight.contains(where: { $0.lane > 0 }) { try await finishOne() }
        return ArraySlice(inFlight.map(\.request))
    }

    private func entry(
        _ attributes: (stored: SFTPRequest?, look: SFTPRequest), _ path: RemotePath
    ) async throws -> RemoteEntry {
        try await waitForStorage(attributes.stored, isNew: true)
        let found = try await attributes.look.reply().attributes()
        guard let entry = RemoteEntry(path.name ?? "", found) else { throw SFTPReader.Malformed() }
        return entry
    }

    /// Gives a complete file its name. Between the check and the rename another client may write: the protocol has no
    /// condition. A free name is safe where the server has hard links, or its rename refuses an existing target, as the draft
    /// says.
    private func place(
        _ hidden: RemotePath, at path: RemotePath, if condition: RemoteCondition, _ last: SFTPRequest,
        _ session: SFTPSession
    ) async throws {
        try await check(condition, path, last, session)
        if condition == .absent {
            do {
                if try await link(hidden, to: path, session) { return }
                try await rename(hidden, to: path, session).reply().checkStatus()
                // The file system has none, such as exFAT.
                return hasHardLinks.store(false, ordering: .relaxed)
            } catch let status as SFTPStatus {
                if let there = try await presentIfAny(path, session) { throw RemoteConditionFailure(present: there) }
                throw status
            }
        }
        if session.has("posix-rename@openssh.com") {
            do {
                let name = Array("posix-rename@openssh.com".utf8)
                return try await session.request(SFTPMessage.extended, [name, bytes(hidden), bytes(path)]).checkStatus()
            } catch let status as SFTPStatus where status.code == SFTPStatus.unsupported {
                session.forgetExtension("posix-rename@openssh.com")
            }
        }
        // A cancelled caller does not leave the name without a file.
        try await Task { try await replace(path, by: hidden, if: condition, session) }.value
    }

    /// Gives a file a name that is free by a hard link, which no server makes over an existing name.
    ///
    /// - Returns: false where there are no hard links, or the name is taken.
    private func link(_ hidden: RemotePath, to path: RemotePath, _ session: SFTPSession) async throws -> Bool {
        guard session.has("hardlink@openssh.com"), hasHardLinks.load(ordering: .relaxed) else { return false }
        do {
            let name = Array("hardlink@openssh.com".utf8)
            try await session.request(SFTPMessage.extended, [name, bytes(hidden), bytes(path)]).checkStatus()
        } catch is SFTPStatus {
            if let there = try await presentIfAny(path, session) { throw RemoteConditionFailure(present: there) }
            return false
        }
        removeHidden(hidden, session)
        return true
    }

    /// Without `posix-rename@openssh.com`: keeps the old content aside until the new one has the name. What took the name
    /// meanwhile stays. The other name is an ordinary one: where the connection breaks in between, no clean-up removes the old
    /// content, which another client may have written.
    private func replace(
        _ path: RemotePath, by hidden: RemotePath, if condition: RemoteCondition, _ session: SFTPSession
    ) async throws {
        let aside = path.parent.appending(Self.asideName(of: path.name ?? ""))
        try await rename(path, to: aside, session).reply().checkStatus()
        do {
            try await check(condition, aside, session)
            try await rename(hidden, to: path, session).reply().checkStatus()
        } catch {
            try await rename(aside, to: path, session).reply().checkStatus()
            throw error
        }
        try await session.request(SFTPMessage.remove, [bytes(aside)]).checkStatus()
    }

    static func asideName(of name: String) -> String {
        let suffix = " (previous version \(String(UInt32.random(in: .min ... .max), radix: 16)))"
        var start = name[...]
        while FileNameText.byteCount(of: start + suffix) > FileProviderItem.maximumFilenameLength {
            start = start.dropLast()
        }
        return start + suffix
    }

    /// The draft's rename, which refuses an existing target; not every server does, so that the caller looks before.
    func rename(_ path: RemotePath, to newPath: RemotePath, _ session: SFTPSession) -> SFTPRequest {
        session.send(SFTPMessage.rename, [bytes(path), bytes(newPath)])
    }
}

extension SFTPAttributes {
    /// What can be stored: times in seconds from 1970 to 2106.
    init(_ attributes: RemoteAttributes) {
        self.init(
            permissions: attributes.permissions.map(UInt32.init),
            modified: attributes.contentModificationDate.map { UInt32(clamping: $0.seconds) })
    }
}
