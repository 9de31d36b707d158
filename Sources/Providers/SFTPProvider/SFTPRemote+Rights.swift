import FileProvider
import FileProviderPaths

/// Changes in directories whose modes deny them (``SFTPReadOnlyDirectories``).
extension SFTPRemote {
    /// Runs a change that makes, renames or removes names in directories. If the server denies it because of their modes, it is
    /// run once more with the owner's rights.
    ///
    /// - Parameters:
    ///   - moved: a directory that has another path after the change.
    ///   - first: what is run first; nil for the change.
    func writing<Value>(
        to directories: Set<RemotePath>, _ session: SFTPSession,
        moving moved: (from: RemotePath, to: RemotePath)? = nil,
        first: (() async throws -> Value)? = nil,
        _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return if let first { try await first() } else { try await body() }
        } catch  where Self.isDenial(error) {
            let denial = error
            var begun: [RemotePath] = []
            // What is below another one is found once that can be searched.
            let above = directories.flatMap { path in path.names.indices.map { RemotePath(Array(path.names[..<$0])) } }
            let result: Result<Value, any Error>
            do {
                for path in directories.union(above).sorted(by: { $0.names.count < $1.names.count })
                where try await begin(path, isWritten: directories.contains(path), session) { begun.append(path) }
                guard !begun.isEmpty else { throw denial }
                result = .success(try await body())
                if let moved, let index = begun.firstIndex(of: moved.from) {
                    readOnlyDirectories.move(moved.from, to: moved.to)
                    begun[index] = moved.to
                }
            } catch {
                result = .failure(error)
            }
            // Also when the caller was cancelled, or one of the directories could not be looked up.
            let deepestFirst = Array(begun.reversed())
            await Task { for path in deepestFirst { await endWriting(to: path, session) } }.value
            return try result.get()
        }
    }

    /// Whether the server did not allow it; of a listing the error is the system's already.
    private static func isDenial(_ error: any Error) -> Bool {
        (error as? SFTPStatus)?.code == SFTPStatus.permissionDenied
            || (error as? FileProviderError)?.code == .fileReadNoPermission
    }

    /// Looks up something for a change, as the change itself.
    func reading<Value>(
        in directory: RemotePath, _ session: SFTPSession, _ body: () async throws -> Value
    ) async throws -> Value {
        guard CallContext.current?.isChange == true else { return try await body() }
        return try await writing(to: [directory], session, body)
    }

    /// - Parameter isWritten: whether it is written to, and not only searched.
    /// - Returns: whether the mode allows that now, and did not before.
    private func begin(_ path: RemotePath, isWritten: Bool, _ session: SFTPSession) async throws -> Bool {
        let status: SFTPAttributes
        do {
            status = try await lookup(path, session).reply().attributes()
        } catch let status as SFTPStatus where status.code == SFTPStatus.permissionDenied {
            return false
        }
        switch readOnlyDirectories.begin(path, status, isWritten: isWritten, { store($0, at: path, session) }) {
        case .isWritable: return false
        case .joined: return true
        case .sent(let request):
            do {
                try await request.reply().checkStatus()
                return true
            } catch is SFTPStatus {
                // It is another user's.
                _ = readOnlyDirectories.end(path, nil) { store($0, at: path, session) }
                return false
            } catch {
                // Whether the server has stored it is not known, for example because the caller was cancelled.
                await Task { await endWriting(to: path, session) }.value
                throw error
            }
        }
    }

    private func endWriting(to path: RemotePath, _ session: SFTPSession) async {
        let status = try? await lookup(path, session).reply().attributes()
        let request = readOnlyDirectories.end(path, status) { store($0, at: path, session) }
        try? await request?.reply().checkStatus()
    }

    private func store(_ permissions: UInt32, at path: RemotePath, _ session: SFTPSession) -> SFTPRequest {
        session.send(SFTPMessage.setstat, [bytes(path)]) { SFTPAttributes(permissions: permissions).write(to: &$0) }
    }
}
