import FileNames
import FileProvider
import Foundation
import PathAddressing

extension SFTPRemote {
    /// The bytes of one request: what every server takes.
    private static let piece: Int64 = 32_768
    /// The requests of one file that are in flight: 2 MB, as much as a channel of OpenSSH lets.
    private static let window = 64

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await connection.reading { session in
            async let present = present(path, session)
            let handle = try await session.request(SFTPMessage.open) {
                $0.append(bytes(path))
                $0.append(UInt32(1))
                $0.append(UInt32(0))
            }.handle()
            defer { session.closeHandle(handle) }
            let entry = try await opened(handle, path, session)
            // Opening follows a symbolic link.
            guard try await present.kind == .file, entry.kind == .file else {
                throw FileProviderError(.noSuchItem, "'\(path.name ?? "/")' is no file")
            }
            guard tag == nil || tag == entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
            let size = entry.size ?? 0
            try await download((range ?? 0..<size).clamped(to: 0..<size), of: handle, session, into: sink)
            guard try await opened(handle, path, session).tag == entry.tag else {
                throw FileProviderError(.versionNoLongerAvailable)
            }
            return entry
        }
    }

    private func opened(_ handle: [UInt8], _ path: RemotePath, _ session: SFTPSession) async throws -> RemoteEntry {
        let attributes = try await session.request(SFTPMessage.fstat) { $0.append(handle) }.attributes()
        guard let entry = RemoteEntry(path.name ?? "", attributes) else { throw SFTPReader.Malformed() }
        return entry
    }

    /// Reads in pieces, many in flight, and writes them in their order.
    private func download(
        _ range: Range<Int64>, of handle: [UInt8], _ session: SFTPSession, into sink: any ContentSink
    ) async throws {
        try await withThrowingTaskGroup(of: (Int64, [UInt8]).self) { group in
            var (asked, written) = (range.lowerBound, range.lowerBound)
            var arrived: [Int64: [UInt8]] = [:]
            while written < range.upperBound {
                while asked < range.upperBound, asked - written < Self.piece * Int64(Self.window) {
                    let (start, count) = (asked, min(Self.piece, range.upperBound - asked))
                    group.addTask { (start, try await Self.piece(start, count, of: handle, session)) }
                    asked += count
                }
                guard let (start, bytes) = try await group.next() else { return }
                arrived[start] = bytes
                while let bytes = arrived.removeValue(forKey: written) {
                    try Task.checkCancellation()
                    let offset = written
                    try await BlockingWork.run { try sink.write(bytes, at: offset) }
                    written += Int64(bytes.count)
                }
            }
        }
    }

    private static func piece(
        _ start: Int64, _ count: Int64, of handle: [UInt8], _ session: SFTPSession
    ) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < Int(count) {
            let missing = Int(count) - bytes.count
            do {
                let more = try await session.request(SFTPMessage.read) {
                    $0.append(handle)
                    $0.append(UInt64(start) + UInt64(bytes.count))
                    $0.append(UInt32(missing))
                }.data()
                guard !more.isEmpty, more.count <= missing else { throw SFTPReader.Malformed() }
                bytes += more
            } catch let status as SFTPStatus where status.code == SFTPStatus.endOfFile {
                // The file was cut meanwhile.
                throw FileProviderError(.versionNoLongerAvailable)
            }
        }
        return bytes
    }

    // MARK: - Writing

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await connection.changing { session in
            try await check(condition, path, session)
            let hidden = path.parent.appending(HiddenName.make())
            do {
                let entry = try await upload(contents, to: hidden, named: path.name ?? "", attributes, session)
                try await place(hidden, at: path, if: condition, session)
                return entry
            } catch {
                let name = bytes(hidden)
                // Also when the caller was cancelled.
                Task { _ = try? await session.request(SFTPMessage.remove) { $0.append(name) } }
                guard let status = error as? SFTPStatus, status.code == SFTPStatus.failure else { throw error }
                if let quota = try? await quota(session), quota.free < contents.size {
                    throw FileProviderError(.insufficientQuota, "the server's disk is full")
                }
                throw error
            }
        }
    }

    /// - Throws: ``RemoteConditionFailure`` when the condition does not hold.
    func check(_ condition: RemoteCondition, _ path: RemotePath, _ session: SFTPSession) async throws {
        switch condition {
        case .always, .empty: return
        case .absent:
            if let there = try await presentIfAny(path, session) { throw RemoteConditionFailure(present: there) }
        case .unchanged(let tag):
            let there = try await presentIfAny(path, session)
            guard let there, there.kind == .file, there.tag == tag else {
                throw RemoteConditionFailure(present: there)
            }
        }
    }

    private func upload(
        _ contents: ContentSource, to hidden: RemotePath, named name: String, _ attributes: RemoteAttributes,
        _ session: SFTPSession
    ) async throws -> RemoteEntry {
        let handle = try await session.request(SFTPMessage.open) {
            $0.append(bytes(hidden))
            // Write, create, and refuse an existing one.
            $0.append(UInt32(0x02 | 0x08 | 0x20))
            SFTPAttributes().write(to: &$0)
        }.handle()
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                var (offset, inFlight) = (Int64(0), 0)
                while offset < contents.size {
                    let start = offset
                    let bytes = try await BlockingWork.run { try contents.read(at: start, count: Int(Self.piece)) }
                    group.addTask {
                        try await session.request(SFTPMessage.write) {
                            $0.append(handle)
                            $0.append(UInt64(start))
                            $0.append(bytes)
                        }.checkStatus()
                    }
                    offset += Int64(bytes.count)
                    inFlight += 1
                    if inFlight >= Self.window {
                        try await group.next()
                        inFlight -= 1
                    }
                }
                try await group.waitForAll()
            }
            try contents.confirm()
            if session.has("fsync@openssh.com") {
                try await session.request(SFTPMessage.extended) {
                    $0.append(Array("fsync@openssh.com".utf8))
                    $0.append(handle)
                }.checkStatus()
            }
            let stored = SFTPAttributes(attributes)
            if stored != SFTPAttributes() {
                try await session.request(SFTPMessage.fsetstat) {
                    $0.append(handle)
                    stored.write(to: &$0)
                }.checkStatus()
            }
            let entry = try await opened(handle, RemotePath([name]), session)
            guard entry.size == contents.size else {
                throw FileProviderError(.malformedResponse, "what arrived is not what was sent")
            }
            try await session.request(SFTPMessage.close) { $0.append(handle) }.checkStatus()
            return entry
        } catch {
            session.closeHandle(handle)
            throw error
        }
    }

    /// Gives a complete file its name. Between the check and the rename another client may write: the protocol has no
    /// condition. A free name is safe, because the draft's rename refuses an existing target.
    private func place(
        _ hidden: RemotePath, at path: RemotePath, if condition: RemoteCondition, _ session: SFTPSession
    ) async throws {
        try await check(condition, path, session)
        if condition == .absent {
            do {
                return try await rename(hidden, to: path, session)
            } catch let status as SFTPStatus {
                if let there = try await presentIfAny(path, session) { throw RemoteConditionFailure(present: there) }
                throw status
            }
        }
        if session.has("posix-rename@openssh.com") {
            return try await session.request(SFTPMessage.extended) {
                $0.append(Array("posix-rename@openssh.com".utf8))
                $0.append(bytes(hidden))
                $0.append(bytes(path))
            }.checkStatus()
        }
        // A cancelled caller does not leave the name without a file.
        try await Task { try await replace(path, by: hidden, if: condition, session) }.value
    }

    /// Without `posix-rename@openssh.com`: keeps the old content aside until the new one has the name. What took the name
    /// meanwhile stays. The other name is an ordinary one: where the connection breaks in between, no clean-up removes the old
    /// content, which another client may have written.
    private func replace(
        _ path: RemotePath, by hidden: RemotePath, if condition: RemoteCondition, _ session: SFTPSession
    ) async throws {
        let aside = path.parent.appending(Self.asideName(of: path.name ?? ""))
        try await rename(path, to: aside, session)
        do {
            try await check(condition, aside, session)
            try await rename(hidden, to: path, session)
        } catch {
            try await rename(aside, to: path, session)
            throw error
        }
        try await session.request(SFTPMessage.remove) { $0.append(bytes(aside)) }.checkStatus()
    }

    private static func asideName(of name: String) -> String {
        let suffix = " (previous version \(String(UInt32.random(in: .min ... .max), radix: 16)))"
        var start = name[...]
        while FileNameText.byteCount(of: start + suffix) > FileProviderItem.maximumFilenameLength {
            start = start.dropLast()
        }
        return start + suffix
    }

    /// The draft's rename, which refuses an existing target; not every server does, so that the caller looks before.
    func rename(_ path: RemotePath, to newPath: RemotePath, _ session: SFTPSession) async throws {
        try await session.request(SFTPMessage.rename) {
            $0.append(bytes(path))
            $0.append(bytes(newPath))
        }.checkStatus()
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
