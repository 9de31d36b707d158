import FileProviderPaths
import Synchronization

/// A file that is open for reading: in the session that found it, and in the sessions for large files that have read of it.
final class SFTPReadFile: Sendable {
    private struct State {
        var more: [SFTPLane] = []
        var readers = 1
        var isClosed = false
        /// How often it was read.
        var uses = 0
    }

    let path: RemotePath
    /// The tag that it had when it was opened.
    let tag: [UInt8]
    let first: SFTPLane
    private let state = Mutex(State())

    init(_ path: RemotePath, tag: [UInt8], _ first: SFTPLane) {
        (self.path, self.tag, self.first) = (path, tag, first)
    }

    func handle(in session: SFTPSession) -> [UInt8]? {
        state.withLock { $0.more.first { $0.session === session }?.handle }
    }

    /// Keeps the handle of the file in another session.
    ///
    /// - Returns: false when the file was closed: the caller closes the handle.
    func keep(_ lane: SFTPLane) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.more.append(lane)
            return true
        }
    }

    /// - Returns: false when it was closed or its session has ended.
    func beginReading() -> Bool {
        state.withLock { state in
            guard !state.isClosed, first.session.isOpen else { return false }
            state.readers += 1
            return true
        }
    }

    /// - Returns: a number to close it with if no reader has come meanwhile; nil while there is another reader.
    func endReading() -> Int? {
        state.withLock { state in
            state.readers -= 1
            state.uses += 1
            return state.readers == 0 ? state.uses : nil
        }
    }

    /// Closes all handles, unless it is being read.
    ///
    /// - Parameter number: what ``endReading()`` has returned; it is not closed when it was read since. Nil for any time.
    func close(ifUnusedSince number: Int? = nil) {
        let lanes: [SFTPLane] = state.withLock { state in
            guard number == nil || number == state.uses, state.readers == 0, !state.isClosed else { return [] }
            state.isClosed = true
            return [first] + state.more
        }
        for lane in lanes { lane.close() }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
}

/// The files that are read in ranges. Opening a file takes two round trips, on each connection: it stays open for a while, because
/// the next range follows.
final class SFTPReadFiles: Sendable {
    private let files = Mutex<[RemotePath: SFTPReadFile]>([:])
    private static let idleTime = Duration.seconds(1)
    /// The most files that are kept: each is a descriptor of the server, on several connections.
    private static let most = 16

    /// An open file with the content that is wanted. The caller calls ``end(_:isKept:)``.
    ///
    /// - Parameter tag: nil for the present content, for which the file is opened anew.
    func file(_ path: RemotePath, tag: [UInt8]?) -> SFTPReadFile? {
        guard let tag, let file = files.withLock({ $0[path] }), file.tag == tag else { return nil }
        return file.beginReading() ? file : nil
    }

    /// Closes what is open at a path and below it, because it is about to be removed or replaced: a server on NFS cannot
    /// remove a directory with an open file.
    func close(at path: RemotePath) {
        let closing = files.withLock { files in
            let closing = files.filter { $0.key == path || $0.key.isBelow(path) }
            for path in closing.keys { files[path] = nil }
            return closing.values
        }
        for file in closing { file.close() }
    }

    /// A range was read.
    ///
    /// - Parameter isKept: whether more of the same content may be read soon.
    func end(_ file: SFTPReadFile, isKept: Bool) {
        guard let number = file.endReading() else { return }
        let isListed = files.withLock { files in
            if isKept, files[file.path] == nil {
                files = files.filter { !$0.value.isClosed }
                if files.count < Self.most { files[file.path] = file }
            } else if !isKept, files[file.path] === file {
                files[file.path] = nil
            }
            return files[file.path] === file
        }
        guard isListed else { return file.close(ifUnusedSince: number) }
        Task { [self] in
            try? await Task.sleep(for: Self.idleTime)
            file.close(ifUnusedSince: number)
            files.withLock { if file.isClosed, $0[file.path] === file { $0[file.path] = nil } }
        }
    }
}
