import FileProvider
import FileProviderPaths

extension SFTPRemote {
    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        let resumed = ResumedSink(sink, from: range?.lowerBound ?? 0)
        return try await connection.reading { session in
            var range = range
            // A session that broke has left this. Without a tag, the file may be another one by now.
            if tag != nil, case let start = resumed.confirmed, start > range?.lowerBound ?? 0 {
                range = start..<(range?.upperBound ?? .max)
            }
            if let file = readFiles.file(path, tag: tag) {
                return try await readRange(range, of: file, file.first.fstat(), into: resumed)
            }
            let look = lookup(path, session)
            let lane = SFTPLane(session: session, handle: try await open(path, 0x01, nil, session))
            // The bytes follow the attributes without a round trip; a small file is whole with them.
            let attributes = lane.fstat()
            let first = lane.readFirst(of: range)
            let last = lane.fstat()
            let entry: RemoteEntry
            do {
                entry = try opened(try await attributes.reply(), path)
                // Opening follows a symbolic link.
                guard try await present(path, look, session).kind == .file, entry.kind == .file else {
                    throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no file")
                }
                guard tag == nil || tag == entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
            } catch {
                lane.close()
                throw error
            }
            return try await readRange(
                range, of: SFTPReadFile(path, tag: entry.tag, lane), attributes, (first, last), into: resumed)
        }
    }

    /// Reads a range of an open file.
    ///
    /// - Parameters:
    ///   - attributes: the file's, requested before its bytes.
    ///   - sent: the request for the first bytes, and for the attributes after them, if they were sent already.
    private func readRange(
        _ range: Range<Int64>?, of file: SFTPReadFile, _ attributes: SFTPRequest,
        _ sent: (bytes: SFTPRequest, attributes: SFTPRequest)? = nil, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        var isKept = false
        defer { readFiles.end(file, isKept: isKept) }
        let (lane, path) = (file.first, file.path)
        let first = sent?.bytes ?? lane.readFirst(of: range)
        var after = sent?.attributes ?? lane.fstat()
        let entry = try opened(try await attributes.reply(), path)
        guard entry.tag == file.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        let size = entry.size ?? 0
        let wanted = (range ?? 0..<size).clamped(to: 0..<size)
        if !wanted.isEmpty {
            let bytes = try await first.data().prefix(wanted.count)
            try await BlockingWork.run { [bytes = Array(bytes)] in try sink.write(bytes, at: wanted.lowerBound) }
            try await sink.pace(Int64(bytes.count))
            let rest = wanted.lowerBound + Int64(bytes.count)..<wanted.upperBound
            if !rest.isEmpty {
                // Other content could have the same tag as long as that is not settled.
                let start = entry.isTagUnsettled ? nil : wanted.lowerBound
                try await download(rest, of: file, confirmingFrom: start, into: sink)
                after = lane.fstat()
            }
        }
        guard try opened(try await after.reply(), path).tag == entry.tag else {
            throw FileProviderError(.versionNoLongerAvailable)
        }
        isKept = wanted.count < size
        return entry
    }

    private func opened(_ reply: SFTPReply, _ path: RemotePath) throws -> RemoteEntry {
        guard let entry = try RemoteEntry(answered: path.name ?? "", reply.attributes()) else {
            throw SFTPReader.Malformed()
        }
        return entry
    }

    /// - Parameter start: the first byte of which the version is confirmed while more bytes come; nil to confirm none.
    private func download(
        _ range: Range<Int64>, of file: SFTPReadFile, confirmingFrom start: Int64?, into sink: any ContentSink
    ) async throws {
        let lanes = SFTPLanes(file.first)
        guard range.upperBound - range.lowerBound >= SFTPBulkConnections.largeSize else {
            return try await download(range, of: file, lanes, confirmingFrom: start, into: sink)
        }
        try await bulk.widen(lanes) { [self] session in
            if let handle = file.handle(in: session) { return SFTPLane(session: session, handle: handle) }
            let lane = SFTPLane(session: session, handle: try await open(file.path, 0x01, nil, session))
            do {
                guard try opened(try await lane.fstat().reply(), file.path).tag == file.tag, file.keep(lane) else {
                    throw FileProviderError(.versionNoLongerAvailable)
                }
            } catch {
                lane.close()
                throw error
            }
            return lane
        } closeLane: { _ in
            // With the file.
        } _: {
            try await download(range, of: file, lanes, confirmingFrom: start, into: sink)
        }
    }

    /// Reads in pieces, many in flight, and writes them in their order. One request for the file's attributes is always in flight, too:
    /// what had come when it was sent is of the version if that is still the same.
    private func download(
        _ range: Range<Int64>, of file: SFTPReadFile, _ lanes: SFTPLanes, confirmingFrom start: Int64?,
        into sink: any ContentSink
    ) async throws {
        var inFlight: [(start: Int64, count: Int64, lane: Int, request: SFTPRequest)] = []
        // The bytes that had come, and the first piece that was requested after it.
        var check: (written: Range<Int64>, next: Int64, attributes: SFTPRequest)?
        var next = range.lowerBound
        while next < range.upperBound || !inFlight.isEmpty {
            try Task.checkCancellation()
            while next < range.upperBound,
                case let count = min(lanes.first.session.pieceLength, range.upperBound - next),
                let (index, lane) = lanes.take(count)
            {
                inFlight.append((next, count, index, lane.read(next, count)))
                next += count
            }
            let piece = inFlight.removeFirst()
            var bytes: [UInt8] = []
            do {
                bytes = try await piece.request.data()
            } catch  where piece.lane > 0 && !Task.isCancelled {
                // The first lane reads what another one failed to.
            }
            lanes.give(back: piece.count, to: piece.lane)
            while bytes.count < Int(piece.count) {
                let missing = piece.count - Int64(bytes.count)
                bytes += try await lanes.first.read(piece.start + Int64(bytes.count), missing).data()
            }
            try await BlockingWork.run { [bytes] in try sink.write(bytes, at: piece.start) }
            // The answer has come with this piece, so that waiting for it costs no round trip.
            if let sent = check, piece.start >= sent.next {
                guard try opened(try await sent.attributes.reply(), file.path).tag == file.tag else {
                    throw FileProviderError(.versionNoLongerAvailable)
                }
                sink.confirmVersion(of: sent.written)
                check = nil
            }
            if let start, check == nil, next < range.upperBound {
                check = (start..<piece.start + piece.count, next, lanes.first.fstat())
            }
            try await sink.pace(piece.count)
        }
    }
}

extension SFTPLane {
    func fstat() -> SFTPRequest { session.send(SFTPMessage.fstat, [handle]) }

    /// Reads the beginning of a range, or of the file.
    func readFirst(of range: Range<Int64>?) -> SFTPRequest {
        let length = session.pieceLength
        return read(range?.lowerBound ?? 0, range.map { min(length, $0.upperBound - $0.lowerBound) } ?? length)
    }

    func read(_ start: Int64, _ count: Int64) -> SFTPRequest {
        session.send(SFTPMessage.read, [handle], contentLength: count) {
            $0.append(UInt64(start))
            $0.append(UInt32(count))
        }
    }

    func write(_ bytes: [UInt8], _ start: Int64) -> SFTPRequest {
        session.send(SFTPMessage.write, [handle], contentLength: Int64(bytes.count)) {
            $0.append(UInt64(start))
            $0.append(bytes)
        }
    }
}

extension SFTPRequest {
    /// The bytes of a READ: at least one, and not more than were requested.
    ///
    /// - Throws: `versionNoLongerAvailable` at the end of the file, which was longer before.
    fileprivate func data() async throws -> [UInt8] {
        do {
            let bytes = try await reply().data()
            guard !bytes.isEmpty, bytes.count <= contentLength else { throw SFTPReader.Malformed() }
            return bytes
        } catch let status as SFTPStatus where status.code == SFTPStatus.endOfFile {
            throw FileProviderError(.versionNoLongerAvailable)
        }
    }
}
