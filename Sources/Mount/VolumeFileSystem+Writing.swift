import FileNames
import FUSE
import FileProvider
import Replica
import Syscalls
import SystemPackage
import Volume

/// Requests that change something.
extension VolumeFileSystem {
    func setAttributes(
        _ request: Request, node: NodeID, changes: AttributeChanges, handle: FileHandle?,
        reply: consuming AttributesReply
    ) {
        let wanted = LocalAttributes(changes)
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.setAttributes(
                of: node.rawValue, to: wanted, caller: Requester(request), request: request.number)
        } succeed: { reply, attributes in
            reply.succeed(FileAttributes(attributes), lifetime: attributes.lifetime)
        }
    }

    func makeNode(
        _ request: Request, parent: NodeID, name: FileName, mode: UInt32, device: UInt32, reply: consuming EntryReply
    ) {
        let name = name.text
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            Entry(
                try volume.make(
                    name, in: parent.rawValue, mode: mode, device: device, caller: Requester(request),
                    isListed: attempt != .unlisted, request: request.number))
        } succeed: { [self] reply, entry in
            succeed(reply, entry, request)
        }
    }

    func makeDirectory(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, reply: consuming EntryReply
    ) {
        makeNode(
            request, parent: parent, name: name, mode: FileKind.directory.rawValue | permissions & 0o7777, device: 0,
            reply: reply)
    }

    func makeSymbolicLink(
        _ request: Request, parent: NodeID, name: FileName, target: [UInt8], reply: consuming EntryReply
    ) {
        let (text, name) = (FileNameText.text(of: target), name.text)
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            Entry(
                try volume.makeSymbolicLink(
                    name, in: parent.rawValue, to: text, caller: Requester(request), isListed: attempt != .unlisted,
                    request: request.number))
        } succeed: { [self] reply, entry in
            succeed(reply, entry, request)
        }
    }

    func link(
        _ request: Request, node: NodeID, newParent: NodeID, newName: FileName, reply: consuming EntryReply
    ) {
        let name = newName.text
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            Entry(
                try volume.link(
                    node.rawValue, as: name, in: newParent.rawValue, isListed: attempt != .unlisted,
                    request: request.number))
        } succeed: { [self] reply, entry in
            succeed(reply, entry, request)
        }
    }

    func unlink(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        let name = name.text
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            try volume.unlink(
                name, in: parent.rawValue, isListed: attempt != .unlisted, request: request.number)
        }
    }

    func removeDirectory(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        let name = name.text
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            try volume.removeDirectory(
                name, in: parent.rawValue, isListed: attempt != .unlisted, request: request.number)
        }
    }

    func rename(
        _ request: Request, parent: NodeID, name: FileName, newParent: NodeID, newName: FileName,
        options: RenameOptions, reply: consuming EmptyReply
    ) {
        let old = name.text
        let new = newName.text
        guard options.isSubset(of: [.noReplace, .exchange]) else { return reply.fail(.invalidArgument) }
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            try volume.rename(
                old, in: parent.rawValue, to: new, in: newParent.rawValue, noReplace: options.contains(.noReplace),
                exchange: options.contains(.exchange), isListed: attempt != .unlisted, request: request.number)
        }
    }

    // MARK: - Files

    func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        let name = name.text
        let registry = flags.allowsPassthrough ? passthrough.registry : nil
        requests.answer(request, reply, worksUnlisted: true) { [volume] attempt throws(VolumeError) in
            do throws(VolumeError) {
                return try volume.create(
                    name, in: parent.rawValue, permissions: UInt16(permissions & 0o7777), isWriting: flags.canWrite,
                    isSynchronous: flags.isSynchronous, caller: Requester(request), registry: registry,
                    isListed: attempt != .unlisted, request: request.number)
            } catch .refused(.fileExists) where !flags.contains(.exclusive) {
                // The name has come since the kernel looked it up. It looks it up again after ESTALE, verifies the permissions of
                // the file, and opens it.
                throw .refused(.staleNFSFileHandle)
            }
        } undo: { [self] made in
            undoOpen(of: made.attributes.node, isWriting: flags.canWrite, registry, request)
        } succeed: { [self] reply, made in
            succeed(reply, made.attributes, made.grant, isWriting: flags.canWrite, registry, request)
        }
    }

    func createUnnamed(
        _ request: Request, parent: NodeID, permissions: UInt32, flags: OpenFlags, reply: consuming CreateReply
    ) {
        let registry = flags.allowsPassthrough ? passthrough.registry : nil
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.createUnnamed(
                in: parent.rawValue, permissions: UInt16(permissions & 0o7777), isWriting: flags.canWrite,
                caller: Requester(request), registry: registry, request: request.number)
        } undo: { [self] made in
            undoOpen(of: made.attributes.node, isWriting: flags.canWrite, registry, request)
        } succeed: { [self] reply, made in
            succeed(reply, made.attributes, made.grant, isWriting: flags.canWrite, registry, request)
        }
    }

    private func succeed(
        _ reply: consuming CreateReply, _ attributes: Attributes, _ grant: OpenGrant, isWriting: Bool,
        _ registry: (any PassthroughRegistry)?, _ request: Request
    ) {
        volume.noteLookup(of: [attributes.node], request: request.number)
        let isOpen = reply.succeed(
            Entry(new: attributes), handle: FileHandle(rawValue: attributes.node), options: grant.options,
            backing: grant.backing)
        guard !isOpen else { return }
        undoOpen(of: attributes.node, isWriting: isWriting, registry, request)
        volume.forget(attributes.node, lookups: 1, undoing: request.number)
    }

    func write(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, data: borrowing WriteData,
        isFromCache: Bool, reply: consuming WriteReply
    ) {
        do throws(VolumeError) {
            let descriptor = try volume.writing(
                node.rawValue, at: offset, count: data.count, caller: isFromCache ? nil : Requester(request))
            do throws(Errno) {
                let count = try descriptor.use { (file) throws(Errno) in try data.copy(to: file, at: offset) }
                reply.succeed(count: count)
            } catch {
                reply.fail(error)
            }
        } catch {
            guard case .refused(let errno) = error else { return reply.fail(.ioError) }
            reply.fail(errno)
        }
    }

    func flush(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.succeed()
    }

    func synchronize(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try volume.synchronize(node.rawValue, isProvided: attempt.isProvided)
        }
    }

    func synchronizeDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        requests.answer(request, reply) { [volume] attempt throws(VolumeError) in
            try volume.synchronizeNames(of: node.rawValue, isProvided: attempt.isProvided)
        }
    }

    func allocate(
        _ request: Request, node: NodeID, handle: FileHandle, mode: Int32, offset: Int64, length: Int64,
        reply: consuming EmptyReply
    ) {
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.allocate(
                node.rawValue, mode: mode, offset: offset, length: length, request: request.number)
        }
    }

    func removeExtendedAttribute(_ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply) {
        let text = name.text
        requests.answer(request, reply) { [volume] _ throws(VolumeError) in
            try volume.removeExtendedAttribute(
                text, of: node.rawValue, caller: Requester(request), request: request.number)
        }
    }
}

extension OpenGrant {
    var options: OpenOptions {
        switch self {
        case .passthrough, .cachedAnew: .noFlush
        case .cached: [.noFlush, .keepCache]
        }
    }

    var backing: BackingID? {
        switch self {
        case .passthrough(let backing): BackingID(rawValue: backing)
        case .cached, .cachedAnew: nil
        }
    }
}

extension Requester {
    init(_ request: Request) {
        self.init(
            processIdentifier: request.caller.processID, userIdentifier: request.caller.userID,
            groupIdentifier: request.caller.groupID, umask: UInt16(request.caller.umask & 0o777))
    }
}

extension LocalAttributes {
    init(_ changes: AttributeChanges) {
        self.init()
        permissions = changes.permissions.map { UInt16($0 & 0o7777) }
        owner = changes.owner
        group = changes.group
        size = changes.size.map { Int64(clamping: $0) }
        accessedAt = changes.accessTime.map(Time.init)
        modifiedAt = changes.modificationTime.map(Time.init)
    }
}

extension LocalAttributes.Time {
    init(_ time: AttributeChanges.Time) {
        switch time {
        case .now: self = .now
        case .at(let time): self = .at(FileTimestamp(seconds: time.seconds, nanoseconds: time.nanoseconds))
        }
    }
}
