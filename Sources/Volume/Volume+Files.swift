import FileProvider
import Logging
import Replica
import Syscalls
import SystemPackage

/// How the reads and writes of an open file are served.
package enum OpenGrant: Hashable, Sendable {
    /// The kernel accesses the content file directly, by this backing ID.
    case passthrough(backing: Int32)
    /// The kernel sends READ and WRITE, and caches pages. It keeps those that it has of earlier opens.
    case cached
    /// As ``cached``, but the kernel drops the pages that it has: a process that reads them makes no request.
    case cachedAnew
}

/// The access mode of an open.
package struct OpenIntent: Hashable, Sendable {
    package var isWriting: Bool
    package var isTruncating: Bool
    package var isReading: Bool
    /// Whether the kernel writes at the end of the file as it knows it (`O_APPEND`).
    package var isAppending: Bool
    /// Whether the kernel may read and write the content file itself, unless the file is open in another way already.
    package var allowsPassthrough: Bool
    /// Whether what is written is on the disk when the write returns (`O_SYNC`, `O_DSYNC`).
    package var isSynchronous: Bool

    /// Whether the kernel writes at the end that it knew before the open.
    package var usesKnownEnd: Bool { isAppending && isWriting && !isTruncating }

    package init(
        isWriting: Bool, isTruncating: Bool, isReading: Bool = true, isAppending: Bool = false,
        allowsPassthrough: Bool = true, isSynchronous: Bool = false
    ) {
        self.isWriting = isWriting
        self.isTruncating = isTruncating
        self.isReading = isReading
        self.isAppending = isAppending
        self.allowsPassthrough = allowsPassthrough
        self.isSynchronous = isSynchronous
    }

    package static let reading = OpenIntent(isWriting: false, isTruncating: false)
}

extension Volume {
    /// Opens a file.
    ///
    /// - Parameters:
    ///   - registry: registers backing files; nil without passthrough.
    ///   - knownSize: the file's size when the request came, if it has waited since; nil if it has not.
    ///   - isPermitted: whether ``Prerequisite/permission(toRead:)`` was given.
    ///   - isInvalidating: whether the kernel has not been told of the last change of the file.
    ///   - request: counted once, also if the kernel sends it again. A backing file that was registered for a process
    ///     that was killed before it had stored the ID stays registered until the unmount.
    /// - Throws: ESTALE for an append if the size has changed while it waited: the kernel would write at the old end. It looks
    ///   the name up after the error, takes the new size from that answer, and opens the file again (do_filp_open). ESTALE also for a
    ///   version that the remote has replaced, unless all of it is here: the name leads to the newest version by now.
    package func open(
        _ node: UInt64, for intent: OpenIntent, caller: Requester, registry: (any PassthroughRegistry)?,
        knownSize: Int64? = nil, isPermitted: Bool = true, isInvalidating: () -> Bool = { false },
        request: RequestNumber? = nil
    ) throws(VolumeError) -> OpenGrant {
        let number = InodeNumber(node)
        // Before anything is changed. Otherwise it is asked for with the inode.
        let isChanging = intent.isWriting || intent.isTruncating
        if intent.isReading, isChanging { try checkReadable(number) }
        // Counted before the row is marked, so that the content is not evicted in between.
        let file = files.retain(number, forWriting: intent.isWriting, request: request)
        do throws(VolumeError) {
            if isChanging { try verifyBeforeWriting(file) }
            // Only what truncates must not be done twice.
            if intent.isWriting {
                try change(
                    intent.isTruncating ? request : nil, .writing(number, caller: LocalCaller(caller))
                ) {
                    try $0.contents.beginWriting(number, truncating: intent.isTruncating, caller: LocalCaller(caller))
                }
            } else if intent.isTruncating {
                // No close for writing follows, which would take a mark away.
                try change(request, .nothing) {
                    try $0.contents.truncate(number, to: 0, caller: LocalCaller(caller))
                }
            }
            if intent.isTruncating { contentWasReplaced(number) }
            let grant = try decide(
                file, isWriting: intent.isWriting, checksReading: intent.isReading && !isChanging,
                registry: intent.allowsPassthrough ? registry : nil, isInvalidating: isInvalidating)
            // Through a mapping a process learns of a refusal by a signal, which ends it.
            if intent.isReading, !isPermitted, file.withState({ $0.mayBeFetched }) {
                throw .needs(.permission(toRead: number))
            }
            if intent.usesKnownEnd {
                // A request that is sent again may have waited in another process.
                if request?.isResent == true { throw .refused(.staleNFSFileHandle) }
                if let knownSize, try attributes(of: node).size != knownSize { throw .refused(.staleNFSFileHandle) }
            }
            if intent.isWriting, intent.isSynchronous { try synchronizeMark(grant) }
            observer.didOpenFile(number)
            return grant
        } catch {
            undoOpen(node, wasWriting: intent.isWriting, registry: registry, request: request)
            throw error
        }
    }

    package func create(
        _ name: String, in parent: UInt64, permissions: UInt16, isWriting: Bool, isSynchronous: Bool = false,
        caller: Requester, registry: (any PassthroughRegistry)?, isListed: Bool = true, request: RequestNumber? = nil
    ) throws(VolumeError) -> (attributes: Attributes, grant: OpenGrant) {
        let group = ownership.group
        let (inode, content) =
            if let made = createAhead(
                name, in: parent, permissions: permissions, caller: caller, request: request)
            {
                made
            } else {
                try change(request, .file) { changes in
                    try changes.names.createFile(
                        name, in: InodeNumber(parent), permissions: permissions, caller: LocalCaller(caller),
                        usualGroup: group, isListed: isListed)
                }
            }
        return try open(
            made: inode, content, isWriting: isWriting, isSynchronous: isSynchronous, registry: registry,
            request: request)
    }

    /// Creates and opens a file without a name (`O_TMPFILE`). ``link(_:as:in:)`` may give it one; otherwise it is
    /// removed with its last use.
    package func createUnnamed(
        in parent: UInt64, permissions: UInt16, isWriting: Bool, caller: Requester,
        registry: (any PassthroughRegistry)?, request: RequestNumber? = nil
    ) throws(VolumeError) -> (attributes: Attributes, grant: OpenGrant) {
        let group = ownership.group
        let (inode, content) = try change(request, .file) { changes in
            try changes.names.createUnnamed(
                in: InodeNumber(parent), permissions: permissions, caller: LocalCaller(caller), usualGroup: group)
        }
        return try open(made: inode, content, isWriting: isWriting, registry: registry, request: request)
    }

    /// Opens a new file with its content file.
    private func open(
        made inode: InodeRecord, _ opened: FileDescriptor, isWriting: Bool, isSynchronous: Bool = false,
        registry: (any PassthroughRegistry)?, request: RequestNumber?
    ) throws(VolumeError) -> (attributes: Attributes, grant: OpenGrant) {
        let content = OwnedDescriptor(opened)
        // A file created for reading only is also marked as written, and compared at its close.
        let file = files.retain(inode.number, forWriting: isWriting, request: request)
        file.isUsed = true
        do throws(VolumeError) {
            let grant = file.withState { state in
                // A request that is sent again finds what was decided before.
                let isDecided = state.isDecided
                state.isDecided = true
                state.isComplete = true
                state.isWritten = true
                if state.descriptor == nil { state.descriptor = content }
                if !isDecided { state.backing = try? content.use { try registry?.register($0) } }
                return state.backing.map { OpenGrant.passthrough(backing: $0) } ?? .cached
            }
            if !isWriting {
                try change { try $0.contents.endWriting(inode.number) }
            } else if isSynchronous {
                try synchronizeMark(grant)
            }
            var attributes = Attributes(inode, ownership: ownership)
            attributes.isVolatile = true
            return (attributes, grant)
        } catch {
            undoOpen(
                UInt64(bitPattern: inode.number.rawValue), wasWriting: isWriting, registry: registry, request: request)
            throw error
        }
    }

    /// Creates a file through the creation log instead of a transaction; nil if that is not possible.
    private func createAhead(
        _ name: String, in parent: UInt64, permissions: UInt16, caller: Requester, request: RequestNumber?
    ) -> (InodeRecord, FileDescriptor)? {
        guard !isReadOnly,
            let made = replica.createAhead(
                name, in: InodeNumber(parent), permissions: permissions, caller: LocalCaller(caller),
                usualGroup: ownership.group, request: request)
        else { return nil }
        observer.volumeDidChange(ReplicaEffects())
        return made
    }

    /// The descriptor for a write to a file that is open for writing.
    ///
    /// - Parameters:
    ///   - offset: of the write, in bytes.
    ///   - count: the number of bytes.
    ///   - caller: clears the set-ID bits unless it is root; nil for writeback by the kernel.
    /// - Throws: EFBIG if the file would become larger than the maximum.
    package func writing(
        _ node: UInt64, at offset: Int64 = 0, count: Int = 0, caller: Requester?
    ) throws(VolumeError) -> OwnedDescriptor {
        let number = InodeNumber(node)
        try checkExtent(at: offset, length: Int64(count))
        guard !isReadOnly, let file = files.file(number) else { throw .refused(.badFileDescriptor) }
        if let caller, caller.userIdentifier != 0, try known({ try replica.database.hasSetID(number) }) {
            try change { try $0.contents.clearSetID(of: number, caller: LocalCaller(caller)) }
        }
        return try file.withState { (state: inout OpenFile.State) throws(VolumeError) in
            state.isWritten = true
            return try openDescriptor(&state, of: number)
        }
    }

    /// Allocates or deallocates space of a file that is open for writing. (fallocate)
    package func allocate(
        _ node: UInt64, mode: Int32, offset: Int64, length: Int64, request: RequestNumber? = nil
    ) throws(VolumeError) {
        let number = InodeNumber(node)
        let descriptor = try writing(node, at: offset, count: Int(length), caller: nil)
        // A range that was written since must not be deallocated again.
        if try known({ try replica.database.wasCarriedOut(request) }) { return }
        try known { try descriptor.use { try $0.allocate(mode: mode, offset: offset, length: length) } }
        try change(request, .nothing) { try $0.contents.contentWasWritten(number) }
    }

    /// Verifies a range that is to be written, allocated or copied to.
    ///
    /// - Throws: EINVAL for negative numbers; EFBIG for a range beyond the maximum file size.
    func checkExtent(at offset: Int64, length: Int64) throws(VolumeError) {
        guard offset >= 0, length >= 0 else { throw .refused(.invalidArgument) }
        guard length <= FileProviderItem.maximumDocumentSize,
            offset <= FileProviderItem.maximumDocumentSize - length
        else { throw .refused(.fileTooLarge) }
    }

    /// Whether the kernel may have stores through a mapping that it has not written back.
    func mayHaveUnwrittenPages(_ number: InodeNumber) -> Bool {
        files.isOpenForWriting(number) && files.file(number)?.withState { $0.backing } == nil
    }

    /// The quota of the remote if it is known, else the free space of the replica's file system. Writes need space on
    /// both.
    package func statistics() throws(VolumeError) -> FileSystemStatistics {
        let here = try known { try FileSystemStatistics(of: replica.directory) }
        guard let remote = observer.remoteQuota, here.blockSize > 0 else { return here }
        var room = here
        let free = max(0, remote.free)
        room.freeBlocks = UInt64(free) / here.blockSize
        room.blocks = UInt64(max(free, remote.total ?? free)) / here.blockSize
        room.availableBlocks = min(room.freeBlocks, here.availableBlocks)
        return room
    }

    // MARK: - What the extensions share

    /// The content file was replaced: open handles use the new one.
    func contentWasReplaced(_ number: InodeNumber) {
        guard let file = files.file(number) else { return }
        file.isUsed = true
        file.withState { state in
            guard state.isDecided else { return }
            state.isWritten = true
            state.isComplete = true
            guard state.backing == nil else { return }
            state.descriptor = nil
        }
    }

    /// Marks a file as used, before its version is read from the database.
    ///
    /// - Throws: ``VolumeError/needs(_:)`` during a transaction that has found the file closed or unused: the database does not
    ///   show yet what it changes.
    func use(_ file: OpenFile) throws(VolumeError) {
        file.isUsed = true
        guard files.isClaimed(file.number) else { return }
        file.isUsed = false
        throw .needs(.claim(of: file.number))
    }

    /// The content file, open for reading and writing. The kernel has checked the access mode.
    func openDescriptor(
        _ state: inout OpenFile.State, of number: InodeNumber
    ) throws(VolumeError) -> OwnedDescriptor {
        if let descriptor = state.descriptor { return descriptor }
        let descriptor = OwnedDescriptor(try known { try replica.openContentForWriting(of: number) })
        state.descriptor = descriptor
        return descriptor
    }

    /// Whether the content file of an unmarked row is there, has the row's size and is not doubtful after a power cut. It is not kept
    /// open: until the file is marked as used, another one may take its place.
    ///
    /// - Parameter isNeeded: whether an empty file needs one, too. It is false then for an empty file of the remote, which has none yet.
    func hasContentFile(_ inode: InodeRecord, isNeeded: Bool = false) throws(VolumeError) -> Bool {
        // The row of a marked file may have an outdated size.
        guard inode.size > 0 || isNeeded, inode.contentStamp == nil else { return true }
        do throws(Errno) {
            let status = try replica.contentStatus(of: inode.number)
            return status.size == inode.size && !replica.isDoubtful(status, inode)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw .refused(error) }
            return false
        }
    }

    /// Verifies content that differs from its row, in a transaction: a truncation may be between the two, or a power cut may have
    /// left it, and the comparison of all files has not reached it yet. Content that is not what the row says becomes dataless.
    ///
    /// - Returns: the row after that.
    /// - Throws: EIO if they still differ.
    @discardableResult
    func verifyContent(
        of number: InodeNumber, _ state: inout OpenFile.State
    ) throws(VolumeError) -> InodeRecord {
        state.descriptor = nil
        let inode = try known { try replica.verifyContent(of: number, mayBeInUse: false, open: files) }
        var effects = ReplicaEffects()
        effects.invalidations = [.contents(number)]
        observer.volumeDidChange(effects)
        guard let inode else {
            logger.error("the content file of inode \(number) has another length than its row")
            throw .refused(.ioError)
        }
        return inode
    }

    // MARK: - Private

    /// Verifies content that differs from its row before the row is marked: the writer's close would take the difference for what
    /// was written, and it would be sent.
    private func verifyBeforeWriting(_ file: OpenFile) throws(VolumeError) {
        try file.withState { (state: inout OpenFile.State) throws(VolumeError) in
            // Processes that have the file open keep the content that they read.
            guard !state.isDecided, let inode = try known({ try replica.database.inode(file.number) }),
                inode.kind == .file, inode.content == .materialized, try !hasContentFile(inode, isNeeded: true)
            else { return }
            try verifyContent(of: file.number, &state)
        }
    }

    /// Puts the name of a file, and the mark that it is being written, on the disk. With passthrough the kernel puts each write to a file
    /// that is open with `O_SYNC` there itself, and does not ask the daemon to add what it knows of the file.
    private func synchronizeMark(_ grant: OpenGrant) throws(VolumeError) {
        guard case .passthrough = grant else { return }
        try known { try replica.synchronize() }
    }

    private func decide(
        _ file: OpenFile, isWriting: Bool, checksReading: Bool, registry: (any PassthroughRegistry)?,
        isInvalidating: () -> Bool
    ) throws(VolumeError) -> OpenGrant {
        try file.withState { (state: inout OpenFile.State) throws(VolumeError) -> OpenGrant in
            if !state.isDecided {
                // Marked before the version is read, so that it does not change in between.
                try use(file)
                try decide(
                    file.number, isWriting: isWriting, checksReading: checksReading, state: &state, registry: registry)
                file.isUsed = state.isComplete || state.isWritten
                // A transaction that has asked meanwhile took it for used, and may give its item another inode.
                if !file.isUsed, files.isClaimed(file.number) {
                    state = OpenFile.State()
                    throw .needs(.claim(of: file.number))
                }
                state.knownSizes = file.isUsed ? nil : state.size...state.size
                // A read of a page that the kernel has would not mark the file as used.
                state.dropsPages = !file.isUsed || isInvalidating()
            } else if checksReading {
                try checkReadable(file.number)
            }
            if !state.isComplete, !state.isWritten,
                try known({ try replica.database.isPartOfOldVersion(file.number) })
            {
                throw .refused(.staleNFSFileHandle)
            }
            if isWriting {
                file.isUsed = true
                state.isWritten = true
                state.isComplete = true
            }
            if let backing = state.backing { return .passthrough(backing: backing) }
            return state.dropsPages ? .cachedAnew : .cached
        }
    }

    private func decide(
        _ number: InodeNumber, isWriting: Bool, checksReading: Bool, state: inout OpenFile.State,
        registry: (any PassthroughRegistry)?
    ) throws(VolumeError) {
        guard let found = try known({ try replica.database.inodeToRead(number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        if checksReading, !found.isAllowed { throw .refused(.permissionDenied) }
        var inode = found.inode
        guard inode.kind == .file else {
            throw .refused(inode.kind == .directory ? .isDirectory : .tooManySymbolicLinkLevels)
        }
        if inode.content == .materialized, try !hasContentFile(inode) {
            inode = try verifyContent(of: number, &state)
        }
        state.version = inode.contentVersion
        state.size = inode.size
        state.isComplete = inode.content == .materialized
        // The row of a marked file may have an outdated size.
        state.isWritten = inode.contentStamp != nil
        if inode.content == .materialized, inode.size > 0 || isWriting || state.isWritten {
            let descriptor = try openDescriptor(&state, of: number)
            // Without permission the file is served by READ and WRITE.
            if let registry { state.backing = try? descriptor.use { try registry.register($0) } }
        }
        state.isDecided = true
    }
}
