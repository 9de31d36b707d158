import FileNames
import FUSE
import Logging
import Syscalls
import SystemPackage
import Volume

/// The kernel's requests, handed to a ``Volume``: decoded, asked, answered. It does not think.
///
/// What the volume knows is answered on the thread that asked. What has to be provided first is parked, and the thread
/// goes back to reading requests.
final class VolumeFileSystem: FileSystem {
    let volume: Volume
    let waiting: WaitingRoom
    /// Set once, before the first request, by the mount that owns the session.
    let passthrough: Passthrough
    let writtenFiles: WrittenFiles

    init(volume: Volume, provisioning: any Provisioning, passthrough: Passthrough) {
        self.volume = volume
        self.passthrough = passthrough
        writtenFiles = WrittenFiles(volume: volume, passthrough: passthrough)
        waiting = WaitingRoom(provisioning: provisioning)
    }

    // MARK: - Names

    /// The answer to a name that is not there. The kernel remembers it for a moment only: in a directory whose listing
    /// is evicted nobody would tell it of a new item of that name.
    private static var absent: Entry { Entry.absent(for: Lifetime(seconds: 1)) }

    func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply) {
        let text = name.text
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            do throws(Obstacle) {
                return Entry(try volume.lookup(text, in: parent.rawValue))
            } catch {
                guard case .refused(.noSuchFileOrDirectory) = error else { throw error }
                return Self.absent
            }
        } attemptUnlisted: { () throws(Obstacle) in
            // A system call that makes this name needs no listing; for any other nobody knows whether it is there.
            guard CallUnderWay.makes(text, thread: request.caller.processID) else {
                throw .refused(.noRouteToHost)
            }
            return Entry.absent(for: .zero)
        } succeed: { [self] reply, entry in
            succeed(reply, entry)
        }
    }

    /// Answers with an entry. The lookup is counted first, because the kernel may forget the node before this returns.
    func succeed(_ reply: consuming EntryReply, _ entry: Entry) {
        guard entry.node != .none else {
            reply.succeed(entry)
            return
        }
        volume.noteLookup(of: [entry.node.rawValue])
        if !reply.succeed(entry) { volume.forget(entry.node.rawValue, lookups: 1) }
    }

    /// FORGET: the kernel has dropped so many of the lookups it was given.
    func forget(node: NodeID, lookups: UInt64) {
        volume.forget(node.rawValue, lookups: lookups)
    }

    func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply) {
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            try volume.attributes(of: node.rawValue)
        } succeed: { reply, attributes in
            reply.succeed(
                FileAttributes(attributes), lifetime: attributes.lifetime)
        }
    }

    func readLink(_ request: Request, node: NodeID, reply: consuming LinkTargetReply) {
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            FileNameText.bytes(of: try volume.linkTarget(of: node.rawValue))
        } succeed: { reply, target in
            reply.succeed(target)
        }
    }

    // MARK: - Files

    func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        let intent = OpenIntent(
            isWriting: flags.canWrite, isTruncating: flags.contains(.truncate), isReading: flags.canRead)
        let registry = passthrough.registry
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            try volume.open(node.rawValue, for: intent, caller: Requester(request), registry: registry)
        } succeed: { [volume] reply, grant in
            let isOpen = reply.succeed(
                handle: FileHandle(rawValue: node.rawValue), options: grant.options, backing: grant.backing)
            if !isOpen { volume.close(node.rawValue, wasWriting: intent.isWriting, registry: registry) }
        }
    }

    func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply
    ) {
        waiting.answer(request, reply) { [volume] isProvided throws(Obstacle) in
            try volume.read(node.rawValue, at: offset, count: count, isProvided: isProvided)
        } succeed: { reply, grant in
            if let descriptor = grant.descriptor, grant.count > 0 {
                reply.succeed(from: descriptor, at: grant.offset, count: grant.count)
            } else {
                reply.succeed([])
            }
        }
    }

    func release(_ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply) {
        if flags.canWrite {
            writtenFiles.add(node)
        } else {
            volume.close(node.rawValue, wasWriting: false, registry: passthrough.registry)
        }
        reply.succeed()
    }

    func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply
    ) {
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            try volume.seek(to: target == .data ? .data : .hole, in: node.rawValue, from: offset)
        } succeed: { reply, offset in
            reply.succeed(offset: offset)
        }
    }

    // MARK: - Directories

    func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        waiting.answer(request, reply) { [volume] isProvided throws(Obstacle) in
            try volume.openDirectory(node.rawValue, caller: Requester(request), isProvided: isProvided)
        } succeed: { reply, _ in
            reply.succeed(handle: FileHandle(rawValue: node.rawValue), options: [.cacheDirectory, .keepCache])
        }
    }

    func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply
    ) {
        let limit = max(16, reply.capacity / DirectoryOffset.usualEntrySize)
        waiting.answer(request, reply) { [volume] isProvided throws(Obstacle) in
            try DirectoryPart(of: node.rawValue, from: offset, limit: limit, isProvided: isProvided, volume: volume)
        } succeed: { [volume] reply, part in
            var reply = reply
            let listed = part.fill(&reply)
            guard reply.wantsEntries else {
                reply.succeed()
                return
            }
            volume.noteLookup(of: listed)
            if !reply.succeed() { for node in listed { volume.forget(node, lookups: 1) } }
        }
    }

    func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.succeed()
    }

    func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply) {
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            let room = try volume.statistics()
            return FileSystemUsage(
                blocks: room.blocks, freeBlocks: room.freeBlocks, availableBlocks: room.availableBlocks,
                files: room.files, freeFiles: room.freeFiles, blockSize: UInt32(clamping: room.blockSize),
                fragmentSize: UInt32(clamping: room.blockSize))
        } succeed: { reply, usage in
            reply.succeed(usage)
        }
    }

    // MARK: - Extended attributes

    func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply
    ) {
        let text = name.text
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
            try volume.extendedAttribute(text, of: node.rawValue)
        } succeed: { reply, value in
            reply.succeed(value)
        }
    }

    func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply) {
        waiting.answer(request, reply) { [volume] _ throws(Obstacle) in
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
        waiting.answer(request, reply) { [volume] isProvided throws(Obstacle) in
            try volume.setExtendedAttribute(
                text, of: node.rawValue, to: value, mustBeNew: options.contains(.create),
                mustExist: options.contains(.replace), caller: Requester(request), isProvided: isProvided)
        } succeed: { reply, _ in
            reply.succeed()
        }
    }
}
