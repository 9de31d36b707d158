import FUSE
import Synchronization
import SystemPackage

extension MemoryFileSystem {
    func lookup(_ request: Request, parent: NodeID, name: FileName, reply: consuming EntryReply) {
        if name == "parked lookup" {
            let parked = ParkedReply(reply) { parked in
                guard let reply = parked.take() else { return }
                self.state.withLock { $0.counts.interrupts += 1 }
                reply.fail(.interrupted)
            }
            state.withLock { $0.parkedLookups.append(parked) }
            return
        }
        let (entry, hook) = state.withLock { state in
            state.counts.lookups += 1
            state.lastCaller = request.caller
            return (state.child(name, of: parent).flatMap { state.entry($0) }, state.onLookup)
        }
        hook?()
        reply.succeed(entry ?? .absent(for: .infinite))
    }

    func makeNode(
        _ request: Request, parent: NodeID, name: FileName, mode: UInt32, device: UInt32, reply: consuming EntryReply
    ) {
        guard FileKind(mode: mode) == .regular else { return reply.fail(.notPermitted) }
        make(request, parent, name, .regular, mode & 0o7777, .bytes([]), reply)
    }

    func makeDirectory(
        _ request: Request, parent: NodeID, name: FileName, permissions: UInt32, reply: consuming EntryReply
    ) {
        make(request, parent, name, .directory, permissions, .children([:]), reply)
    }

    func makeSymbolicLink(
        _ request: Request, parent: NodeID, name: FileName, target: [UInt8], reply: consuming EntryReply
    ) {
        make(request, parent, name, .symbolicLink, 0o777, .target(target), reply)
    }

    private func make(
        _ request: Request, _ parent: NodeID, _ name: FileName, _ kind: FileKind, _ permissions: UInt32,
        _ content: Content, _ reply: consuming EntryReply
    ) {
        let entry = state.withLock { state -> Entry? in
            state.numbers.append(request.number)
            guard state.child(name, of: parent) == nil else { return nil }
            let node = state.insert(
                name, into: parent, kind: kind, permissions: permissions, content: content,
                owner: request.caller.userID, group: request.caller.groupID)
            return state.entry(node)
        }
        guard let entry else { return reply.fail(.fileExists) }
        reply.succeed(entry)
    }

    func readLink(_ request: Request, node: NodeID, reply: consuming LinkTargetReply) {
        let target = state.withLock { state -> [UInt8]? in
            if case .target(let target) = state.nodes[node]?.content { target } else { nil }
        }
        guard let target else { return reply.fail(.invalidArgument) }
        reply.succeed(target)
    }

    func link(
        _ request: Request, node: NodeID, newParent: NodeID, newName: FileName, reply: consuming EntryReply
    ) {
        let entry = state.withLock { state in
            state.updateChildren(of: newParent) { $0[newName] = node }
            state.nodes[node]?.attributes.linkCount += 1
            return state.entry(node)
        }
        guard let entry else { return reply.fail(.noSuchFileOrDirectory) }
        reply.succeed(entry)
    }

    func unlink(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        state.withLock { state in
            if let node = state.child(name, of: parent) { state.nodes[node]?.attributes.linkCount -= 1 }
            state.updateChildren(of: parent) { $0[name] = nil }
        }
        reply.succeed()
    }

    func removeDirectory(_ request: Request, parent: NodeID, name: FileName, reply: consuming EmptyReply) {
        let isEmpty = state.withLock { state in
            guard let node = state.child(name, of: parent), case .children(let children) = state.nodes[node]?.content,
                children.isEmpty
            else { return false }
            state.updateChildren(of: parent) { $0[name] = nil }
            return true
        }
        guard isEmpty else { return reply.fail(.directoryNotEmpty) }
        reply.succeed()
    }

    func rename(
        _ request: Request, parent: NodeID, name: FileName, newParent: NodeID, newName: FileName,
        options: RenameOptions, reply: consuming EmptyReply
    ) {
        let failure = state.withLock { state -> Errno? in
            guard let node = state.child(name, of: parent) else { return .noSuchFileOrDirectory }
            let other = state.child(newName, of: newParent)
            if options.contains(.noReplace), other != nil { return .fileExists }
            if options.contains(.exchange), other == nil { return .noSuchFileOrDirectory }
            state.updateChildren(of: parent) { $0[name] = options.contains(.exchange) ? other : nil }
            state.updateChildren(of: newParent) { $0[newName] = node }
            return nil
        }
        if let failure { return reply.fail(failure) }
        reply.succeed()
    }

    func openDirectory(_ request: Request, node: NodeID, flags: OpenFlags, reply: consuming OpenReply) {
        reply.succeed(handle: FileHandle(node.rawValue), options: [.cacheDirectory, .keepCache])
    }

    func readDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, offset: Int64, reply: consuming DirectoryReply
    ) {
        var names = state.withLock { state -> [(FileName, Entry)] in
            state.counts.listings += 1
            guard case .children(let children) = state.nodes[node]?.content else { return [] }
            return children.sorted { $0.value.rawValue < $1.value.rawValue }.compactMap { name, node in
                state.entry(node).map { (name, $0) }
            }
        }
        names.insert((".", Entry(attributes: FileAttributes(node: node, kind: .directory, permissions: 0))), at: 0)
        names.insert(("..", Entry(attributes: FileAttributes(node: .root, kind: .directory, permissions: 0))), at: 1)
        for index in Int(offset)..<max(Int(offset), names.count) {
            let (name, entry) = names[index]
            // Both ways of adding a name, by turns: what the kernel is not told it looks up.
            let added =
                index % 2 == 0
                ? reply.append(name, entry: entry, offset: Int64(index + 1))
                : reply.append(
                    name, node: entry.node, kind: entry.attributes.kind, offset: Int64(index + 1))
            if !added { break }
        }
        reply.succeed()
    }

    func releaseDirectory(_ request: Request, node: NodeID, handle: FileHandle, reply: consuming EmptyReply) {
        reply.succeed()
    }

    func synchronizeDirectory(
        _ request: Request, node: NodeID, handle: FileHandle, dataOnly: Bool, reply: consuming EmptyReply
    ) {
        reply.fail(.noFunction)
    }

    func createUnnamed(
        _ request: Request, parent: NodeID, permissions: UInt32, flags: OpenFlags, reply: consuming CreateReply
    ) {
        reply.fail(.noFunction)
    }

    func forget(node: NodeID, lookups: UInt64) {}
}
