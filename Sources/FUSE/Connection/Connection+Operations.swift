import CFUSEShim
import SystemPackage

/// The table of what libfuse calls. Made in a function of the library: a closure in a program's main file would be
/// isolated to the main actor and die on libfuse's threads.
func makeOperations() -> fuseshim_operations {
    var table = fuseshim_operations()
    addConnectionOperations(to: &table)
    addNameOperations(to: &table)
    addFileOperations(to: &table)
    addDirectoryOperations(to: &table)
    addAttributeOperations(to: &table)
    return table
}

/// The connection that libfuse hands back with each call. It is alive: the thread that serves holds it.
private func connection(_ owner: UnsafeMutableRawPointer?) -> Connection {
    guard let owner else { preconditionFailure("the session has no owner") }
    return Unmanaged<Connection>.fromOpaque(owner).takeUnretainedValue()
}

/// Hands a request, with the reply made for it, to the file system.
@inline(__always)
private func handle(
    _ owner: UnsafeMutableRawPointer?, _ request: OpaquePointer?, isTransfer: Bool = false,
    _ body: (any FileSystem, Request, consuming PendingReply) -> Void
) {
    guard let request else { return }
    let connection = connection(owner)
    let unique = connection.nextUnique()
    let caller = fuseshim_request_caller(request)
    if isTransfer { connection.locality.noteTransfer() } else { connection.locality.note(caller.process) }
    let description = Request(
        caller: Caller(processID: caller.process, userID: caller.user, groupID: caller.group, umask: caller.umask),
        unique: unique)
    body(connection.fileSystem, description, PendingReply(request, of: connection, unique: unique))
}

private func addConnectionOperations(to table: inout fuseshim_operations) {
    table.started = { owner, features in
        if let features { connection(owner).started(ConnectionFeatures(features.pointee)) }
    }
    table.interrupted = { owner, key in connection(owner).interrupts.fire(key) }
    table.forget = { owner, node, lookups in
        connection(owner).fileSystem.forget(node: NodeID(node), lookups: lookups)
    }
}

private func addNameOperations(to table: inout fuseshim_operations) {
    table.lookup = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.lookup(request, parent: NodeID(parent), name: FileName(name), reply: EntryReply(pending))
        }
    }
    table.mknod = { owner, request, parent, name, mode, device in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.makeNode(
                request, parent: NodeID(parent), name: FileName(name), mode: mode,
                device: UInt32(truncatingIfNeeded: device), reply: EntryReply(pending))
        }
    }
    table.mkdir = { owner, request, parent, name, mode in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.makeDirectory(
                request, parent: NodeID(parent), name: FileName(name), permissions: mode & 0o7777,
                reply: EntryReply(pending))
        }
    }
    table.symlink = { owner, request, target, parent, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.makeSymbolicLink(
                request, parent: NodeID(parent), name: FileName(name), target: FileName(target).bytes,
                reply: EntryReply(pending))
        }
    }
    table.link = { owner, request, node, parent, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.link(
                request, node: NodeID(node), newParent: NodeID(parent), newName: FileName(name),
                reply: EntryReply(pending))
        }
    }
    table.unlink = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.unlink(request, parent: NodeID(parent), name: FileName(name), reply: EmptyReply(pending))
        }
    }
    table.rmdir = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.removeDirectory(
                request, parent: NodeID(parent), name: FileName(name), reply: EmptyReply(pending))
        }
    }
    table.rename = { owner, request, parent, name, newParent, newName, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.rename(
                request, parent: NodeID(parent), name: FileName(name), newParent: NodeID(newParent),
                newName: FileName(newName), options: RenameOptions(rawValue: flags), reply: EmptyReply(pending))
        }
    }
    table.readlink = { owner, request, node in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.readLink(request, node: NodeID(node), reply: LinkTargetReply(pending))
        }
    }
}

private func addFileOperations(to table: inout fuseshim_operations) {
    table.open = { owner, request, node, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.open(
                request, node: NodeID(node), flags: OpenFlags(rawValue: flags), reply: OpenReply(pending))
        }
    }
    table.create = { owner, request, parent, name, mode, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.create(
                request, parent: NodeID(parent), name: FileName(name), permissions: mode & 0o7777,
                flags: OpenFlags(rawValue: flags), reply: CreateReply(pending))
        }
    }
    table.tmpfile = { owner, request, parent, mode, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.createUnnamed(
                request, parent: NodeID(parent), permissions: mode & 0o7777, flags: OpenFlags(rawValue: flags),
                reply: CreateReply(pending))
        }
    }
    table.read = { owner, request, node, file, offset, size in
        handle(owner, request, isTransfer: true) { fileSystem, request, pending in
            fileSystem.read(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset, count: size,
                reply: ReadReply(pending, capacity: size))
        }
    }
    table.write = { owner, request, node, file, offset, data, isFromCache in
        guard let data else { return }
        handle(owner, request, isTransfer: true) { fileSystem, request, pending in
            let data = WriteData(data)
            fileSystem.write(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset, data: data,
                isFromCache: isFromCache, reply: WriteReply(pending))
        }
    }
    table.flush = { owner, request, node, file, lockOwner in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.flush(
                request, node: NodeID(node), handle: FileHandle(file), lockOwner: lockOwner,
                reply: EmptyReply(pending))
        }
    }
    table.release = { owner, request, node, file, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.release(
                request, node: NodeID(node), handle: FileHandle(file), flags: OpenFlags(rawValue: flags),
                reply: EmptyReply(pending))
        }
    }
    table.fsync = { owner, request, node, file, dataOnly in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.synchronize(
                request, node: NodeID(node), handle: FileHandle(file), dataOnly: dataOnly, reply: EmptyReply(pending))
        }
    }
    table.fallocate = { owner, request, node, file, mode, offset, length in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.allocate(
                request, node: NodeID(node), handle: FileHandle(file), options: AllocationOptions(rawValue: mode),
                offset: offset, length: length, reply: EmptyReply(pending))
        }
    }
    table.copy_file_range = { owner, request, node, file, offset, toNode, toFile, toOffset, size, _ in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.copyRange(
                request, from: FileRange(node: NodeID(node), handle: FileHandle(file), offset: offset),
                to: FileRange(node: NodeID(toNode), handle: FileHandle(toFile), offset: toOffset), count: size,
                reply: WriteReply(pending))
        }
    }
    table.lseek = { owner, request, node, file, offset, whence in
        handle(owner, request) { fileSystem, request, pending in
            let reply = OffsetReply(pending)
            guard let target = SeekTarget(rawValue: whence) else {
                reply.fail(.invalidArgument)
                return
            }
            fileSystem.seek(
                request, node: NodeID(node), handle: FileHandle(file), to: target, from: offset, reply: reply)
        }
    }
}

private func addDirectoryOperations(to table: inout fuseshim_operations) {
    table.opendir = { owner, request, node, flags in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.openDirectory(
                request, node: NodeID(node), flags: OpenFlags(rawValue: flags), reply: OpenReply(pending))
        }
    }
    table.readdir = { owner, request, node, file, offset, size, plus in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.readDirectory(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset,
                reply: DirectoryReply(pending, capacity: size, wantsEntries: plus))
        }
    }
    table.releasedir = { owner, request, node, file in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.releaseDirectory(
                request, node: NodeID(node), handle: FileHandle(file), reply: EmptyReply(pending))
        }
    }
    table.fsyncdir = { owner, request, node, file, dataOnly in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.synchronizeDirectory(
                request, node: NodeID(node), handle: FileHandle(file), dataOnly: dataOnly, reply: EmptyReply(pending))
        }
    }
}

private func addAttributeOperations(to table: inout fuseshim_operations) {
    table.getattr = { owner, request, node, hasHandle, file in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.getAttributes(
                request, node: NodeID(node), handle: hasHandle ? FileHandle(file) : nil,
                reply: AttributesReply(pending))
        }
    }
    table.setattr = { owner, request, node, change, hasHandle, file in
        guard let change else { return }
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.setAttributes(
                request, node: NodeID(node), changes: AttributeChanges(change.pointee),
                handle: hasHandle ? FileHandle(file) : nil, reply: AttributesReply(pending))
        }
    }
    table.statfs = { owner, request, node in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.getUsage(request, node: NodeID(node), reply: StatisticsReply(pending))
        }
    }
    table.access = { owner, request, node, mask in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.access(request, node: NodeID(node), mask: mask, reply: EmptyReply(pending))
        }
    }
    table.setxattr = { owner, request, node, name, value, size, flags in
        handle(owner, request) { fileSystem, request, pending in
            let value = [UInt8](UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : size))
            fileSystem.setExtendedAttribute(
                request, node: NodeID(node), name: FileName(name), value: value,
                options: ExtendedAttributeOptions(rawValue: flags), reply: EmptyReply(pending))
        }
    }
    table.getxattr = { owner, request, node, name, size in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.getExtendedAttribute(
                request, node: NodeID(node), name: FileName(name),
                reply: ExtendedAttributeReply(pending, capacity: size))
        }
    }
    table.listxattr = { owner, request, node, size in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.listExtendedAttributes(
                request, node: NodeID(node), reply: ExtendedAttributeReply(pending, capacity: size))
        }
    }
    table.removexattr = { owner, request, node, name in
        handle(owner, request) { fileSystem, request, pending in
            fileSystem.removeExtendedAttribute(
                request, node: NodeID(node), name: FileName(name), reply: EmptyReply(pending))
        }
    }
}
