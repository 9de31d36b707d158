import FileNames
import FileProvider
import FUSE
import Syscalls
import SystemPackage
import Volume

/// Translates kernel requests to calls of a ``Volume``, and their results to replies. It contains no policy.
///
/// An answer that the volume knows is sent on the serving thread. A request with a missing prerequisite is parked, and the
/// thread returns to reading requests.
final class VolumeFileSystem: FileSystem {
    let volume: Volume
    let requests: ParkedRequests
    let passthrough: Passthrough
    let closedFiles: ClosedFiles
    private let notifications: Notifications

    init(volume: Volume, provisioning: any Provisioning, passthrough: Passthrough, notifications: Notifications) {
        self.volume = volume
        self.notifications = notifications
        self.passthrough = passthrough
        closedFiles = ClosedFiles(volume: volume, passthrough: passthrough)
        requests = ParkedRequests(provisioning: provisioning)
    }

    /// Continues with the open files of the process that owned the mount before.
    func restoreOpenFiles() throws(Errno) {
        do throws(VolumeError) {
            closedFiles.resume(try volume.restoreOpenFiles())
        } catch {
            guard case .refused(let errno) = error else { throw .ioError }
            throw errno
        }
    }

    /// Counts a request that the kernel has sent to no daemon.
    func count(_ missed: MissedRequests.Record) {
        switch missed {
        case .forget(let node, let lookups): volume.forget(node, lookups: lookups)
        case .release(let node, let flags, let request):
            release(
                node: NodeID(node), flags: OpenFlags(rawValue: flags), RequestNumber(rawValue: request, isResent: true))
        }
    }

    // MARK: - Names

    /// The answer for a missing name. The kernel caches it briefly only, because no invalidation is sent for a new item in
    /// a directory whose listing has been evicted.
    private static var absent: Entry { Entry.absent(for: Lifetime(seconds: 1)) }

    func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply) {
        let text = name.text
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            if attempt == .unlisted {
                // A system call that makes this name needs no listing. For any other call the answer is unknown.
                guard CallUnderWay.makes(text, thread: request.caller.processID) else {
                    throw .refused(.noRouteToHost)
                }
                return Entry.absent(for: .zero)
            }
            do throws(VolumeError) {
                return Entry(try volume.lookup(text, in: parent.rawValue))
            } catch {
                guard case .refused(.noSuchFileOrDirectory) = error else { throw error }
                return Self.absent
            }
        } succeed: { [self] reply, entry in
            succeed(reply, entry, request)
        }
    }

    /// Answers with an entry. The lookup is counted first, because FORGET may arrive before this returns.
    func succeed(_ reply: consuming EntryReply, _ entry: Entry, _ request: Request) {
        guard entry.node != .none else {
            reply.succeed(entry)
            return
        }
        let (node, request) = (entry.node.rawValue, request.number)
        volume.noteLookup(of: [node], request: request)
        if !reply.succeed(entry) { volume.forget(node, lookups: 1, undoing: request) }
    }

    func forget(node: NodeID, lookups: UInt64) {
        volume.forget(node.rawValue, lookups: lookups)
    }

    func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.attributes(of: node.rawValue)
        } succeed: { reply, attributes in
            reply.succeed(
                FileAttributes(attributes), lifetime: attributes.lifetime)
        }
    }

    func readLink(_ request: Request, node: NodeID, reply: consuming LinkTargetReply) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            FileNameText.bytes(of: try volume.linkTarget(of: node.rawValue))
        } succeed: { reply, target in
            reply.succeed(target)
        }
    }

    // MARK: - Files

    func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        let intent = OpenIntent(
            isWriting: flags.canWrite, isTruncating: flags.contains(.truncate), isReading: flags.canRead,
            isAppending: flags.contains(.append), allowsPassthrough: flags.allowsPassthrough,
            isSynchronous: flags.isSynchronous)
        let thread = request.caller.processID
        if intent.usesKnownEnd, notifications.renewsSize(of: node, for: thread) {
            return refuseAppend(to: node, by: thread, reply)
        }
        let registry = passthrough.registry
        let size = intent.usesKnownEnd ? try? volume.attributes(of: node.rawValue).size : nil
        requests.answer(request, reply) { [volume, notifications] attempt throws(VolumeError) in
            try volume.open(
                node.rawValue, for: intent, caller: Requester(request), registry: registry,
                knownSize: attempt == .first ? nil : size, isPermitted: attempt.isPermitted,
                isInvalidating: { notifications.isInvalidating(node) }, request: request.number)
        } undo: { [self] _ in
            undoOpen(of: node.rawValue, isWriting: intent.isWriting, registry, request)
        } refuse: { [self] reply, error in
            // The kernel opens the file anew after this ESTALE, too, and would pass a second one on to the process.
            guard intent.usesKnownEnd, error == .staleNFSFileHandle, notifications.renewsSize(of: node, for: thread)
            else { return reply.fail(error) }
            refuseAppend(to: node, by: thread, reply)
        } succeed: { [self] reply, grant in
            // The file has changed, and the kernel would believe the size that it has.
            if notifications.isInvalidating(node) { reply.expireAttributes(of: node) }
            let isOpen = reply.succeed(
                handle: FileHandle(rawValue: node.rawValue), options: grant.options, backing: grant.backing)
            if !isOpen { undoOpen(of: node.rawValue, isWriting: intent.isWriting, registry, request) }
        }
    }

    /// Has the kernel open a file anew, because it would write at the old end. After ESTALE it looks the name up again, or asks for the
    /// attributes of an open file. It does so once, and passes a second ESTALE on to the process.
    private func refuseAppend(to node: NodeID, by thread: Int32, _ reply: consuming OpenReply) {
        guard thread == 0 else {
            reply.expireAttributes(of: node)
            return reply.fail(.staleNFSFileHandle)
        }
        // The second open cannot be told from the first one of another thread. It comes when the kernel knows of the change.
        requests.refuse(reply, .staleNFSFileHandle) { [notifications] in await notifications.drain() }
    }

    /// Takes back an open that the kernel has not heard of.
    func undoOpen(
        of node: UInt64, isWriting: Bool, _ registry: (any PassthroughRegistry)?, _ request: Request
    ) {
        volume.undoOpen(node, wasWriting: isWriting, registry: registry, request: request.number)
    }

    func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply
    ) {
        let unreadSize = volume.unreadSize(of: node.rawValue, readingTo: offset.saturatingAdd(Int64(count))) {
            notifications.isInvalidating(node)
        }
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try volume.read(
                node.rawValue, at: offset, count: count, isProvided: attempt.isProvided, unreadSize: unreadSize)
        } succeed: { [volume] reply, grant in
            if grant.isLonger, grant.reachesEnd {
                reply.expireAttributes(of: node)
            } else if grant.isLonger {
                volume.tellSize(of: node.rawValue) { size, end, content in
                    reply.tellSize(of: node, size, readingTo: end, in: content)
                }
            }
            if let descriptor = grant.descriptor, grant.count > 0 {
                reply.succeed(from: descriptor, at: grant.offset, count: grant.count)
            } else {
                reply.succeed([])
            }
        }
    }

    func release(_ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply) {
        release(node: node, flags: flags, request.number)
        reply.succeed()
    }

    private func release(node: NodeID, flags: OpenFlags, _ request: RequestNumber?) {
        if flags.canWrite {
            closedFiles.add(node, request: request)
        } else {
            volume.close(node.rawValue, wasWriting: false, registry: passthrough.registry, request: request)
        }
    }

    func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply
    ) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.seek(to: target == .data ? .data : .hole, in: node.rawValue, from: offset)
        } succeed: { reply, offset in
            reply.succeed(offset: offset)
        }
    }

    // MARK: - Directories

    func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try volume.openDirectory(node.rawValue, caller: Requester(request), isProvided: attempt.isProvided)
        } succeed: { reply, _ in
            reply.succeed(handle: FileHandle(rawValue: node.rawValue), options: [.cacheDirectory, .keepCache])
        }
    }

    func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply
    ) {
        let limit = max(16, reply.capacity / DirectoryOffset.typicalEntrySize)
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try DirectoryPage(
                of: node.rawValue, from: offset, limit: limit, isProvided: attempt.isProvided, volume: volume)
        } succeed: { [volume] reply, page in
            var reply = reply
            let listed = page.fill(&reply)
            guard reply.wantsEntries else {
                reply.succeed()
                return
            }
            // Not with the request: one that the kernel sends again may list other entries.
            volume.noteLookup(of: listed)
            if !reply.succeed() { for node in listed { volume.forget(node, lookups: 1) } }
        }
    }

    func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.succeed()
    }

    func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.statistics()
        } succeed: { reply, statistics in
            reply.succeed(statistics)
        }
    }

    // MARK: - Extended attributes

    func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply
    ) {
        let text = name.text
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.extendedAttribute(text, of: node.rawValue)
        } succeed: { reply, value in
            reply.succeed(value)
        }
    }

    func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.extendedAttributeNames(of: node.rawValue, caller: Requester(request)).map { FileName($0) }
        } succeed: { reply, names in
            reply.succeed(names: names)
        }
    }

    func setExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, value: [UInt8], options: ExtendedAttributeOptions,
        reply: consuming EmptyReply
    ) {
        let text = name.text
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try volume.setExtendedAttribute(
                text, of: node.rawValue, to: value, mustBeNew: options.contains(.create),
                mustExist: options.contains(.replace), caller: Requester(request), isProvided: attempt.isProvided,
                request: request.number)
        }
    }
}
