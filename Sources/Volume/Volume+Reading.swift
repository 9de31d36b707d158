import FileProvider
import Replica
import Syscalls
import SystemPackage

/// The location of the bytes of a read.
package struct ReadGrant: Sendable {
    package var descriptor: OwnedDescriptor?
    package var offset: Int64
    package var count: Int
    /// Whether the kernel may know a smaller size of the file: ``Volume/tellSize(of:_:)`` comes before the answer.
    package var isLonger = false
    /// Whether the request reaches the page of the last byte: then it is not told so, because that would wait for this answer.
    package var reachesEnd = false
}

extension Volume {
    /// The largest size that the kernel may know of an open file that no process has read from, for
    /// ``read(_:at:count:isProvided:unreadSize:)``; nil for other files.
    ///
    /// - Parameters:
    ///   - end: of the range that is requested.
    ///   - isInvalidating: whether the kernel has not been told of the last change of the file; called for the first request. The file may
    ///     have been opened after the change, and the kernel knows the size of an earlier version then.
    package func unreadSize(
        of node: UInt64, readingTo end: Int64, isInvalidating: () -> Bool = { false }
    ) -> Int64? {
        guard let file = files.file(InodeNumber(node)), !file.isUsed else { return nil }
        return file.withState { (state: inout OpenFile.State) -> Int64? in
            if state.knownSizes != nil, state.requestedEnd == 0, isInvalidating() { state.knownSizes = 0...Int64.max }
            state.requestedEnd = max(state.requestedEnd, end)
            return state.knownSizes?.upperBound
        }
    }

    /// The location of a range of an open file.
    ///
    /// - Parameters:
    ///   - isProvided: whether the range that an earlier attempt needed has been fetched.
    ///   - unreadSize: ``unreadSize(of:readingTo:isInvalidating:)`` when the request came.
    /// - Throws: ESTALE where the first read took a shorter version that ends in the range, once, and for each request that came before.
    ///   The kernel still has the old size, and would fill the file with zeros. It asks again after the error, and takes the new size
    ///   from that answer.
    package func read(
        _ node: UInt64, at offset: Int64, count: Int, isProvided: Bool, unreadSize: Int64? = nil
    ) throws(VolumeError) -> ReadGrant {
        let number = InodeNumber(node)
        guard let file = files.file(number) else { throw .refused(.badFileDescriptor) }
        return try file.withState { (state: inout OpenFile.State) throws(VolumeError) -> ReadGrant in
            state.dropsPages = false
            if state.isWritten {
                let descriptor = try openDescriptor(&state, of: number)
                state.size = try known { try descriptor.use { try $0.lengths().size } }
            }
            if state.knownSizes != nil {
                state.requestedEnd = max(state.requestedEnd, offset.saturatingAdd(Int64(count)))
            }
            let range: Range<Int64>
            if file.isUsed {
                range = Self.range(at: offset, count: count, in: state)
                if !range.isEmpty, !state.isComplete, !isProvided {
                    try checkPresence(of: range, in: number, state: &state)
                }
            } else {
                range = try beginReading(file, at: offset, count: count, isProvided: isProvided, state: &state)
            }
            let isShorter = state.isShorterThanKnown || unreadSize.map { $0 > state.size } ?? false
            if isShorter, range.upperBound - range.lowerBound < count {
                state.forgetLargerSizes()
                throw .refused(.staleNFSFileHandle)
            }
            guard !range.isEmpty else { return ReadGrant(descriptor: nil, offset: offset, count: 0) }
            let descriptor = try openDescriptor(&state, of: number)
            let lastPage = (state.size - 1) / Self.smallestPage * Self.smallestPage
            return ReadGrant(
                descriptor: descriptor, offset: range.lowerBound, count: Int(range.upperBound - range.lowerBound),
                isLonger: state.sizeToTell != nil,
                reachesEnd: offset.saturatingAdd(Int64(count)) > lastPage)
        }
    }

    /// Of memory, in bytes. Some processors have larger ones.
    private static let smallestPage: Int64 = 4096

    /// Calls `tell` with the size of a file of which the kernel may know a smaller one, unless another request has done so.
    ///
    /// The kernel is told by storing the last byte, and that waits for a request of the byte's page. The kernel requests no page beyond the
    /// sizes that it knows, and learns no other size before `tell` has returned: the attributes of the file are not answered meanwhile.
    ///
    /// - Parameter tell: gets the size, the end of all that the kernel may have requested, and the content file. It must not ask for
    ///   attributes.
    package func tellSize(
        of node: UInt64, _ tell: (_ size: Int64, _ end: Int64, _ content: OwnedDescriptor) -> Void
    ) {
        guard let file = files.file(InodeNumber(node)), file.isUsed else { return }
        file.tellSize { state in
            guard let known = state.knownSizes, let content = state.descriptor else { return }
            tell(state.size, max(state.requestedEnd, known.upperBound), content)
        }
    }

    /// Clamps a range to the size of the file.
    private static func range(at offset: Int64, count: Int, in state: OpenFile.State) -> Range<Int64> {
        guard offset >= 0, offset < state.size, count > 0 else { return 0..<0 }
        return offset..<(offset + min(state.size - offset, Int64(count)))
    }

    /// The first read from an open file: it takes the newest version, which all later reads keep to.
    ///
    /// - Returns: the range, clamped to the size of the file. Its content is here.
    private func beginReading(
        _ file: OpenFile, at offset: Int64, count: Int, isProvided: Bool, state: inout OpenFile.State
    ) throws(VolumeError) -> Range<Int64> {
        var isProvided = isProvided
        while true {
            guard let inode = try known({ try replica.database.inode(file.number) }) else {
                throw .refused(.staleNFSFileHandle)
            }
            if inode.contentVersion != state.version {
                isProvided = false
                state.version = inode.contentVersion
                state.size = inode.size
            }
            let range = Self.range(at: offset, count: count, in: state)
            if !range.isEmpty, !isProvided { try checkPresence(of: range, in: file.number, state: &state) }
            try use(file)
            // A version that was taken in before the mark could be seen.
            let now = try known { try replica.database.inode(file.number) }
            if now?.contentVersion == state.version { return range }
            file.isUsed = false
            state.isComplete = false
        }
    }

    /// The next data or hole at or after an offset. Missing content counts as data, because a tool that skips holes
    /// must not take it for zeros; so do pages that are not written back, and content of which the first read may take another version.
    package func seek(
        to extent: FileDescriptor.Extent, in node: UInt64, from offset: Int64
    ) throws(VolumeError) -> Int64 {
        let inode = try inode(node)
        guard inode.kind == .file else { throw .refused(.invalidArgument) }
        let size = shownAttributes(of: inode).size
        guard offset >= 0, offset < size else { throw .refused(.noSuchAddressOrDevice) }
        let keepsVersion = files.file(inode.number)?.isUsed != false
        if keepsVersion, inode.content == .materialized, !mayHaveUnwrittenPages(inode.number) {
            let found = try known {
                let descriptor = try replica.openContent(of: inode.number)
                defer { try? descriptor.close() }
                return try descriptor.seek(to: extent, from: offset)
            }
            return found
        }
        return extent == .data ? offset : size
    }

    private func checkPresence(
        of range: Range<Int64>, in number: InodeNumber, state: inout OpenFile.State
    ) throws(VolumeError) {
        guard let inode = try known({ try replica.database.inode(number) }),
            inode.contentVersion == state.version
        else { throw .refused(.staleNFSFileHandle) }
        switch inode.content {
        case .materialized:
            state.isComplete = true
            return
        case .partial where try known({ try replica.database.presentRanges(of: number) }).contains(range):
            // A crash may have left another file in its place.
            if try hasContentFile(inode) { return }
            try verifyContent(of: number, &state)
        case .partial, .dataless: break
        }
        throw .needs(.content(of: number, version: state.version, range: range))
    }
}
