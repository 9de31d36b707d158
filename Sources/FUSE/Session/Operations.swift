import CFUSEShim
import Syscalls
import SystemPackage

/// Returns the table of callbacks for libfuse. It is a function of this library, because a closure in a program's
/// `main.swift` is isolated to the main actor and traps on libfuse's threads.
func makeOperations() -> fuseshim_operations {
    var table = fuseshim_operations()
    addConnectionOperations(to: &table)
    addNameOperations(to: &table)
    addFileOperations(to: &table)
    addDirectoryOperations(to: &table)
    addAttributeOperations(to: &table)
    return table
}

/// Returns the service that libfuse passes to each callback. It is alive, because the serving thread retains it.
private func service(_ owner: UnsafeMutableRawPointer?) -> Service {
    guard let owner else { preconditionFailure("the session has no owner") }
    return Unmanaged<Service>.fromOpaque(owner).takeUnretainedValue()
}

/// The kernel's number of the request that the calling thread handles.
private func currentNumber() -> RequestNumber? {
    let number = fuseshim_current_number()
    return number == 0 ? nil : RequestNumber(rawValue: number, isResent: fuseshim_current_is_resent())
}

/// Passes a request to the file system, with the reply that answers it.
@inline(__always)
private func handle<Answer>(
    _ owner: UnsafeMutableRawPointer?, _ request: OpaquePointer?, capacity: Int = 0, isTransfer: Bool = false,
    _ body: (any FileSystem, Request, consuming KernelReply<Answer>) -> Void
) {
    guard let request else { return }
    let service = service(owner)
    let connection = service.connection
    let unique = connection.nextUnique()
    let caller = fuseshim_request_caller(request)
    if isTransfer { connection.locality.noteTransfer() } else { connection.locality.note(caller.process) }
    let description = Request(
        caller: Caller(processID: caller.process, userID: caller.user, groupID: caller.group, umask: caller.umask),
        unique: unique, number: currentNumber())
    body(
        service.fileSystem, description, KernelReply(request, of: connection, unique: unique, capacity: capacity))
}

private func addConnectionOperations(to table: inout fuseshim_operations) {
    table.started = { owner, features in
        if let features { service(owner).connection.started(ConnectionFeatures(features.pointee)) }
    }
    table.interrupted = { owner, key in service(owner).connection.interrupts.fire(key) }
    table.forget = { owner, node, lookups in
        service(owner).fileSystem.forget(node: NodeID(node), lookups: lookups)
    }
}

private func addNameOperations(to table: inout fuseshim_operations) {
    table.lookup = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.lookup(request, parent: NodeID(parent), name: FileName(name), reply: reply)
        }
    }
    table.mknod = { owner, request, parent, name, mode, device in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.makeNode(
                request, parent: NodeID(parent), name: FileName(name), mode: mode,
                device: UInt32(truncatingIfNeeded: device), reply: reply)
        }
    }
    table.mkdir = { owner, request, parent, name, mode in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.makeDirectory(
                request, parent: NodeID(parent), name: FileName(name), permissions: mode & 0o7777,
                reply: reply)
        }
    }
    table.symlink = { owner, request, target, parent, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.makeSymbolicLink(
                request, parent: NodeID(parent), name: FileName(name), target: FileName(target).bytes,
                reply: reply)
        }
    }
    table.link = { owner, request, node, parent, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.link(
                request, node: NodeID(node), newParent: NodeID(parent), newName: FileName(name),
                reply: reply)
        }
    }
    table.unlink = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.unlink(request, parent: NodeID(parent), name: FileName(name), reply: reply)
        }
    }
    table.rmdir = { owner, request, parent, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.removeDirectory(
                request, parent: NodeID(parent), name: FileName(name), reply: reply)
        }
    }
    table.rename = { owner, request, parent, name, newParent, newName, flags in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.rename(
                request, parent: NodeID(parent), name: FileName(name), newParent: NodeID(newParent),
                newName: FileName(newName), options: RenameOptions(rawValue: flags), reply: reply)
        }
    }
    table.readlink = { owner, request, node in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.readLink(request, node: NodeID(node), reply: reply)
        }
    }
}

private func addFileOperations(to table: inout fuseshim_operations) {
    table.open = { owner, request, node, flags in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.open(
                request, node: NodeID(node), flags: OpenFlags(rawValue: flags), reply: reply)
        }
    }
    table.create = { owner, request, parent, name, mode, flags in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.create(
                request, parent: NodeID(parent), name: FileName(name), permissions: mode & 0o7777,
                flags: OpenFlags(rawValue: flags), reply: reply)
        }
    }
    table.tmpfile = { owner, request, parent, mode, flags in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.createUnnamed(
                request, parent: NodeID(parent), permissions: mode & 0o7777, flags: OpenFlags(rawValue: flags),
                reply: reply)
        }
    }
    table.read = { owner, request, node, file, offset, size in
        handle(owner, request, capacity: size, isTransfer: true) { fileSystem, request, reply in
            fileSystem.read(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset, count: size,
                reply: reply)
        }
    }
    table.write = { owner, request, node, file, offset, data, isFromCache in
        guard let data else { return }
        handle(owner, request, isTransfer: true) { (fileSystem, request, reply: consuming WriteReply) in
            let data = WriteData(data, isFromCache: isFromCache)
            fileSystem.write(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset, data: data,
                isFromCache: isFromCache, reply: reply)
        }
    }
    table.flush = { owner, request, node, file in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.flush(request, node: NodeID(node), handle: FileHandle(file), reply: reply)
        }
    }
    table.release = { owner, request, node, file, flags in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.release(
                request, node: NodeID(node), handle: FileHandle(file), flags: OpenFlags(rawValue: flags),
                reply: reply)
        }
    }
    table.fsync = { owner, request, node, file, dataOnly in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.synchronize(
                request, node: NodeID(node), handle: FileHandle(file), dataOnly: dataOnly, reply: reply)
        }
    }
    table.fallocate = { owner, request, node, file, mode, offset, length in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.allocate(
                request, node: NodeID(node), handle: FileHandle(file), mode: mode, offset: offset, length: length,
                reply: reply)
        }
    }
    table.lseek = { owner, request, node, file, offset, whence in
        handle(owner, request) { (fileSystem, request, reply: consuming OffsetReply) in
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
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.openDirectory(
                request, node: NodeID(node), flags: OpenFlags(rawValue: flags), reply: reply)
        }
    }
    table.readdir = { owner, request, node, file, offset, size, plus in
        handle(owner, request, capacity: size) { fileSystem, request, reply in
            fileSystem.readDirectory(
                request, node: NodeID(node), handle: FileHandle(file), offset: offset,
                reply: DirectoryReply(reply, wantsEntries: plus))
        }
    }
    table.releasedir = { owner, request, node, file in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.releaseDirectory(
                request, node: NodeID(node), handle: FileHandle(file), reply: reply)
        }
    }
    table.fsyncdir = { owner, request, node, file, dataOnly in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.synchronizeDirectory(
                request, node: NodeID(node), handle: FileHandle(file), dataOnly: dataOnly, reply: reply)
        }
    }
}

private func addAttributeOperations(to table: inout fuseshim_operations) {
    table.getattr = { owner, request, node, hasHandle, file in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.getAttributes(
                request, node: NodeID(node), handle: hasHandle ? FileHandle(file) : nil,
                reply: reply)
        }
    }
    table.setattr = { owner, request, node, change, hasHandle, file in
        guard let change else { return }
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.setAttributes(
                request, node: NodeID(node), changes: AttributeChanges(change.pointee),
                handle: hasHandle ? FileHandle(file) : nil, reply: reply)
        }
    }
    table.statfs = { owner, request, node in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.getUsage(request, node: NodeID(node), reply: reply)
        }
    }
    table.setxattr = { owner, request, node, name, value, size, flags in
        handle(owner, request) { (fileSystem, request, reply: consuming EmptyReply) in
            let value = [UInt8](UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : size))
            fileSystem.setExtendedAttribute(
                request, node: NodeID(node), name: FileName(name), value: value,
                options: ExtendedAttributeOptions(rawValue: flags), reply: reply)
        }
    }
    table.getxattr = { owner, request, node, name, size in
        handle(owner, request, capacity: size) { fileSystem, request, reply in
            fileSystem.getExtendedAttribute(
                request, node: NodeID(node), name: FileName(name),
                reply: reply)
        }
    }
    table.listxattr = { owner, request, node, size in
        handle(owner, request, capacity: size) { fileSystem, request, reply in
            fileSystem.listExtendedAttributes(
                request, node: NodeID(node), reply: reply)
        }
    }
    table.removexattr = { owner, request, node, name in
        handle(owner, request) { fileSystem, request, reply in
            fileSystem.removeExtendedAttribute(
                request, node: NodeID(node), name: FileName(name), reply: reply)
        }
    }
}
