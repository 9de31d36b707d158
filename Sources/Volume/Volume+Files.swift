import FileProvider
import Logging
import Replica
import Syscalls
import SystemPackage

/// How an open file is served.
package enum OpenGrant: Hashable, Sendable {
    /// The kernel reads the local content by itself, under this number.
    case passthrough(backing: Int32)
    /// Reads come here; the kernel keeps what it was given.
    case cached
}

/// Where the bytes of a read are.
package struct ReadGrant: Sendable {
    /// Open for as long as the file is.
    package var descriptor: FileDescriptor?
    package var offset: Int64
    package var count: Int
}

/// Open files.
extension Volume {
    /// Opens a file for reading.
    ///
    /// - Parameter registry: makes the kernel read by itself; nil where it cannot.
    package func open(_ node: UInt64, registry: (any PassthroughRegistry)?) throws(Obstacle) -> OpenGrant {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        let file = files.retain(number)
        do throws(Obstacle) {
            return try file.withState { (state: inout OpenFile.State) throws(Obstacle) -> OpenGrant in
                if !state.isDecided { try decide(number, state: &state, registry: registry) }
                return state.backing.map { .passthrough(backing: $0) } ?? .cached
            }
        } catch {
            close(node, registry: registry)
            throw error
        }
    }

    /// Closes one handle of a file.
    package func close(_ node: UInt64, registry: (any PassthroughRegistry)?) {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let file = files.release(number) else { return }
        file.withState { state in
            if let backing = state.backing { registry?.unregister(backing) }
            try? state.descriptor?.close()
            state = OpenFile.State()
        }
        handleClosed(number)
    }

    /// Where to read a range of an open file from.
    ///
    /// - Parameter isProvided: whether the range that was thrown as absent before has come.
    package func read(_ node: UInt64, at offset: Int64, count: Int, isProvided: Bool) throws(Obstacle) -> ReadGrant {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let file = files.file(number) else { throw .refused(.badFileDescriptor) }
        return try file.withState { (state: inout OpenFile.State) throws(Obstacle) -> ReadGrant in
            guard offset >= 0, offset < state.size, count > 0 else {
                return ReadGrant(descriptor: nil, offset: offset, count: 0)
            }
            let range = offset..<min(state.size, offset + Int64(count))
            if !state.isComplete, !isProvided {
                try checkPresence(of: range, in: number, state: &state)
            }
            if state.descriptor == nil {
                state.descriptor = try known { try replica.openContent(of: number) }
            }
            return ReadGrant(
                descriptor: state.descriptor, offset: range.lowerBound,
                count: Int(range.upperBound - range.lowerBound))
        }
    }

    /// The next data or hole at or after an offset. What is not here counts as data: a tool that trusts holes must never
    /// take absent content for zeros.
    package func seek(
        to extent: FileDescriptor.Extent, in node: UInt64, from offset: Int64
    ) throws(Obstacle) -> Int64 {
        let inode = try inode(node)
        guard inode.kind == .file else { throw .refused(.invalidArgument) }
        guard offset >= 0, offset < inode.size else { throw .refused(.noSuchAddressOrDevice) }
        if inode.content == .materialized, inode.size > 0 {
            let found = try known {
                let descriptor = try replica.openContent(of: inode.number)
                defer { try? descriptor.close() }
                return try descriptor.seek(to: extent, from: offset)
            }
            return found
        }
        return extent == .data ? offset : inode.size
    }

    /// Room on the file system that holds the replica.
    package func statistics() throws(Obstacle) -> FileSystemStatistics {
        try known { try FileSystemStatistics(of: replica.directory) }
    }

    // MARK: - Private

    private func decide(
        _ number: InodeNumber, state: inout OpenFile.State, registry: (any PassthroughRegistry)?
    ) throws(Obstacle) {
        guard let inode = try known({ try replica.database.inode(number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        guard inode.kind == .file else {
            throw .refused(inode.kind == .directory ? .isDirectory : .tooManySymbolicLinkLevels)
        }
        state.version = inode.contentVersion
        state.size = inode.size
        state.isComplete = inode.content == .materialized
        if inode.content == .materialized, inode.size > 0 {
            let descriptor = try known { try replica.openContent(of: number) }
            state.descriptor = descriptor
            if let lengths = try? descriptor.lengths(), lengths.size != inode.size {
                logger.error("the content file of inode \(number) has \(lengths.size) bytes and not \(inode.size)")
                throw .refused(.ioError)
            }
            // Without the right to it the file is served by reads: slower, and just as well.
            if let registry { state.backing = try? registry.register(descriptor) }
        }
        state.isDecided = true
    }

    private func checkPresence(
        of range: Range<Int64>, in number: InodeNumber, state: inout OpenFile.State
    ) throws(Obstacle) {
        guard let inode = try known({ try replica.database.inode(number) }),
            inode.contentVersion == state.version
        else { throw .refused(.staleNFSFileHandle) }
        switch inode.content {
        case .materialized: state.isComplete = true
        case .partial where try known({ try replica.database.presentRanges(of: number) }).contains(range): break
        case .partial, .dataless:
            throw .absent(.content(of: number, version: state.version, range: range))
        }
    }
}
