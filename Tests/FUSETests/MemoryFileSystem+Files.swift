import FUSE
import Synchronization
import Syscalls
import SystemPackage

extension MemoryFileSystem {
    func getAttributes(_ request: Request, node: NodeID, handle: FileHandle?, reply: consuming AttributesReply) {
        let attributes = state.withLock { state in
            state.counts.attributes += 1
            return state.nodes[node]?.attributes
        }
        guard let attributes else { return reply.fail(.staleNFSFileHandle) }
        reply.succeed(attributes)
    }

    func setAttributes(
        _ request: Request, node: NodeID, changes: AttributeChanges, handle: FileHandle?,
        reply: consuming AttributesReply
    ) {
        let attributes = state.withLock { state -> FileAttributes? in
            if let size = changes.size, case .bytes(let bytes) = state.nodes[node]?.content {
                let padding = [UInt8](repeating: 0, count: max(0, Int(size) - bytes.count))
                state.nodes[node]?.setBytes(Array(bytes.prefix(Int(size))) + padding)
            }
            if let permissions = changes.permissions { state.nodes[node]?.attributes.permissions = permissions }
            if let owner = changes.owner { state.nodes[node]?.attributes.owner = owner }
            if let group = changes.group { state.nodes[node]?.attributes.group = group }
            if case .at(let time) = changes.modificationTime { state.nodes[node]?.attributes.modificationTime = time }
            if case .at(let time) = changes.accessTime { state.nodes[node]?.attributes.accessTime = time }
            return state.nodes[node]?.attributes
        }
        guard let attributes else { return reply.fail(.staleNFSFileHandle) }
        reply.succeed(attributes)
    }

    func open(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        let (options, content, session) = state.withLock { state in
            if flags.contains(.truncate) { state.nodes[node]?.setBytes([]) }
            return (state.openOptions, state.nodes[node]?.content, state.session)
        }
        var backing: BackingID?
        if case .backing(let file, let known, let size) = content, let session, session.negotiated?.passthrough == true
        {
            do throws(Errno) {
                let registered: BackingID
                if let known { registered = known } else { registered = try session.registerBacking(file.descriptor) }
                state.withLock { $0.nodes[node]?.content = .backing(file, registered, size: size) }
                backing = registered
            } catch {
                return reply.fail(error)
            }
        }
        reply.succeed(handle: FileHandle(node.rawValue), options: backing == nil ? options : [], backing: backing)
    }

    func create(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        let entry = state.withLock { state in
            state.lastCaller = request.caller
            let node = state.insert(
                name, into: parent, kind: .regular, permissions: permissions, content: .bytes([]),
                owner: request.caller.userID, group: request.caller.groupID)
            return state.entry(node)
        }
        guard let entry else { return reply.fail(.ioError) }
        reply.succeed(entry, handle: FileHandle(entry.node.rawValue), options: [.keepCache, .noFlush])
    }

    func read(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, count: Int, reply: consuming ReadReply
    ) {
        let content = state.withLock { state in
            state.counts.reads += 1
            return state.nodes[node]?.content
        }
        switch content {
        case .bytes(let bytes):
            let start = min(Int(offset), bytes.count)
            reply.succeed([UInt8](bytes[start..<min(start + count, bytes.count)]))
        case .file(let file, _), .backing(let file, _, _):
            reply.succeed(from: file, at: offset, count: count)
        case .parked:
            let parked = ParkedReply(reply) { parked in
                guard let reply = parked.take() else { return }
                self.state.withLock { $0.counts.interrupts += 1 }
                reply.fail(.interrupted)
            }
            state.withLock { $0.parked.append(ParkedRead(offset: offset, count: count, reply: parked)) }
        case .forgotten:
            // Ends here, unanswered.
            _ = consume reply
        default:
            reply.fail(.isDirectory)
        }
    }

    func write(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, data: borrowing WriteData,
        isFromCache: Bool, reply: consuming WriteReply
    ) {
        do {
            let count = data.count
            switch state.withLock({ $0.nodes[node]?.content }) {
            case .file(let file, let size):
                let moved = try data.copy(to: file.descriptor, at: offset)
                state.withLock { state in
                    state.counts.writes += 1
                    state.nodes[node]?.content = .file(file, size: max(size, UInt64(offset) + UInt64(moved)))
                    state.nodes[node]?.measure()
                }
                reply.succeed(count: moved)
            case .bytes:
                let new = try data.bytes()
                state.withLock { state in
                    state.counts.writes += 1
                    guard case .bytes(var bytes) = state.nodes[node]?.content else { return }
                    let missing = Int(offset) + new.count - bytes.count
                    if missing > 0 { bytes += [UInt8](repeating: 0, count: missing) }
                    bytes.replaceSubrange(Int(offset)..<Int(offset) + new.count, with: new)
                    state.nodes[node]?.setBytes(bytes)
                }
                reply.succeed(count: count)
            default:
                reply.fail(.badFileDescriptor)
            }
        } catch {
            reply.fail(error)
        }
    }

    func flush(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.succeed()
    }

    func release(
        _ request: Request, node: NodeID, handle: FileHandle, flags: OpenFlags, reply: consuming EmptyReply
    ) {
        let onRelease = state.withLock { state in
            state.counts.releases += 1
            return state.onRelease
        }
        onRelease?()
        reply.succeed()
    }

    func synchronize(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        reply.succeed()
    }

    func allocate(
        _ request: Request, node: NodeID, handle: FileHandle, mode: Int32, offset: Int64, length: Int64,
        reply: consuming EmptyReply
    ) {
        guard mode == 0 else { return reply.fail(.notSupported) }
        state.withLock { state in
            guard case .bytes(let bytes) = state.nodes[node]?.content else { return }
            let missing = max(0, Int(offset + length) - bytes.count)
            state.nodes[node]?.setBytes(bytes + [UInt8](repeating: 0, count: missing))
        }
        reply.succeed()
    }

    /// The first half is data, the second a hole.
    func seek(
        _ request: Request, node: NodeID, handle: FileHandle, to target: SeekTarget, from offset: Int64,
        reply: consuming OffsetReply
    ) {
        let size = state.withLock { Int64($0.nodes[node]?.attributes.size ?? 0) }
        guard offset < size else { return reply.fail(.noSuchAddressOrDevice) }
        switch target {
        case .data where offset < size / 2: reply.succeed(offset: offset)
        case .data: reply.fail(.noSuchAddressOrDevice)
        case .hole: reply.succeed(offset: max(offset, size / 2))
        }
    }

    func getUsage(_ request: Request, node: NodeID, reply: consuming StatisticsReply) {
        guard var statistics = try? FileSystemStatistics(of: "/") else { return reply.fail(.ioError) }
        (statistics.blockSize, statistics.blocks, statistics.freeBlocks) = (4096, 1000, 600)
        (statistics.availableBlocks, statistics.files, statistics.freeFiles) = (500, 77, 11)
        reply.succeed(statistics)
    }

    func setExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, value: [UInt8], options: ExtendedAttributeOptions,
        reply: consuming EmptyReply
    ) {
        let failure = state.withLock { state -> Errno? in
            state.numbers.append(request.number)
            let exists = state.nodes[node]?.extendedAttributes[name] != nil
            if options.contains(.create), exists { return .fileExists }
            if options.contains(.replace), !exists { return .noData }
            state.nodes[node]?.extendedAttributes[name] = value
            return nil
        }
        if let failure { return reply.fail(failure) }
        reply.succeed()
    }

    func getExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming ExtendedAttributeReply
    ) {
        let value = state.withLock { state in
            state.counts.extendedAttributes += 1
            return state.nodes[node]?.extendedAttributes[name]
        }
        guard let value else {
            return reply.fail(.noData)
        }
        reply.succeed(value)
    }

    func listExtendedAttributes(_ request: Request, node: NodeID, reply: consuming ExtendedAttributeReply) {
        let names = state.withLock { $0.nodes[node]?.extendedAttributes.keys.sorted { "\($0)" < "\($1)" } ?? [] }
        reply.succeed(names: names)
    }

    func removeExtendedAttribute(
        _ request: Request, node: NodeID, name: FileName, reply: consuming EmptyReply
    ) {
        let removed = state.withLock { $0.nodes[node]?.extendedAttributes.removeValue(forKey: name) }
        guard removed != nil else { return reply.fail(.noData) }
        reply.succeed()
    }
}
