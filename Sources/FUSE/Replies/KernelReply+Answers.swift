import CFUSEShim
import Syscalls
import SystemPackage

/// The shapes of answers. They only select the `succeed` functions of a ``KernelReply``.
package enum Answers {
    package enum Attributes {}
    package enum Bytes {}
    package enum Count {}
    package enum Created {}
    package enum Directory {}
    package enum Empty {}
    package enum Entry {}
    package enum ExtendedAttribute {}
    package enum LinkTarget {}
    package enum Offset {}
    package enum Opened {}
    package enum Usage {}
}

/// The reply to GETATTR and SETATTR.
package typealias AttributesReply = KernelReply<Answers.Attributes>
/// The reply to CREATE and TMPFILE.
package typealias CreateReply = KernelReply<Answers.Created>
/// The reply to requests that return nothing but success.
package typealias EmptyReply = KernelReply<Answers.Empty>
/// The reply to LOOKUP, MKNOD, MKDIR, SYMLINK and LINK.
package typealias EntryReply = KernelReply<Answers.Entry>
/// The reply to GETXATTR and LISTXATTR.
package typealias ExtendedAttributeReply = KernelReply<Answers.ExtendedAttribute>
/// The reply to READLINK.
package typealias LinkTargetReply = KernelReply<Answers.LinkTarget>
/// The reply to LSEEK.
package typealias OffsetReply = KernelReply<Answers.Offset>
/// The reply to OPEN and OPENDIR.
package typealias OpenReply = KernelReply<Answers.Opened>
/// The reply to READ: the requested bytes, fewer only at the end of the file. Bytes beyond the request are cut off,
/// because the kernel rejects a longer answer and the reader would wait forever.
package typealias ReadReply = KernelReply<Answers.Bytes>
/// The reply to STATFS.
package typealias StatisticsReply = KernelReply<Answers.Usage>
/// The reply to WRITE.
package typealias WriteReply = KernelReply<Answers.Count>

extension KernelReply where Answer == Answers.Empty {
    package consuming func succeed() {
        _ = answer { fuseshim_reply_error($0, 0) }
    }
}

extension KernelReply where Answer == Answers.Attributes {
    package consuming func succeed(_ attributes: FileAttributes, lifetime: Lifetime = .infinite) {
        var attributes = attributes.shim
        _ = answer { fuseshim_reply_attributes($0, &attributes, lifetime.shim) }
    }
}

extension KernelReply where Answer == Answers.Entry {
    /// Answers with an entry. The kernel counts one lookup of its node, unless the entry is absent.
    ///
    /// - Returns: false when the kernel had given up on the request and counted nothing.
    @discardableResult
    package consuming func succeed(_ entry: Entry) -> Bool {
        var entry = entry.shim
        return answer { fuseshim_reply_entry($0, &entry) }
    }
}

extension KernelReply where Answer == Answers.Opened {
    /// Answers that the node is open.
    ///
    /// - Parameter backing: the file that the kernel reads, writes and maps directly (passthrough). All concurrent
    ///   opens of one node must name the same backing file, or none.
    /// - Returns: false when the kernel had given up on the open. No RELEASE follows, so the caller must undo the open.
    @discardableResult
    package consuming func succeed(
        handle: FileHandle, options: OpenOptions = [], backing: BackingID? = nil
    ) -> Bool {
        var opened = fuseshim_opened(handle, options, backing)
        return answer { fuseshim_reply_opened($0, &opened) }
    }
}

extension KernelReply where Answer == Answers.Created {
    /// Answers with the new file, open.
    ///
    /// - Returns: false when the kernel had given up on the request. No RELEASE follows and no lookup was counted.
    @discardableResult
    package consuming func succeed(
        _ entry: Entry, handle: FileHandle, options: OpenOptions = [], backing: BackingID? = nil
    ) -> Bool {
        var entry = entry.shim
        var opened = fuseshim_opened(handle, options, backing)
        return answer { fuseshim_reply_created($0, &entry, &opened) }
    }
}

extension KernelReply where Answer == Answers.Bytes {
    package consuming func succeed(_ bytes: [UInt8]) {
        let capacity = capacity
        _ = answer { request in
            bytes.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, min($0.count, capacity)) }
        }
    }

    /// Answers with a range of a file: spliced on the thread that received the request, copied on any other. The answer
    /// is shorter at the end of the file; a read error becomes the answer. May wait for the disk.
    package consuming func succeed(from file: OwnedDescriptor, at offset: Int64, count: Int) {
        defer { withExtendedLifetime(file) {} }
        let (number, count) = (file.descriptor.rawValue, min(count, capacity))
        _ = answer { fuseshim_reply_descriptor($0, number, offset, count) }
    }
}

extension KernelReply where Answer == Answers.Count {
    package consuming func succeed(count: Int) {
        _ = answer { fuseshim_reply_written($0, count) }
    }
}

extension KernelReply where Answer == Answers.Offset {
    package consuming func succeed(offset: Int64) {
        _ = answer { fuseshim_reply_offset($0, offset) }
    }
}

extension KernelReply where Answer == Answers.LinkTarget {
    /// Answers with the target. A target of more than 4095 bytes fails with ENAMETOOLONG, because the kernel rejects it.
    package consuming func succeed(_ target: [UInt8]) {
        guard target.count < 4096 else { return fail(.fileNameTooLong) }
        _ = answer { request in
            target.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, $0.count) }
        }
    }
}

extension KernelReply where Answer == Answers.ExtendedAttribute {
    /// Answers with the whole value. A caller that asked only for the length gets the length; a caller whose buffer is
    /// too small gets ERANGE.
    package consuming func succeed(_ value: [UInt8]) {
        let capacity = capacity
        _ = answer { request in
            if capacity == 0 { return fuseshim_reply_length(request, value.count) }
            if value.count > capacity { return fuseshim_reply_error(request, Errno.outOfRange.rawValue) }
            return value.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, $0.count) }
        }
    }

    /// Answers with a list of names, each terminated by a zero byte.
    package consuming func succeed(names: [FileName]) {
        succeed(names.flatMap { $0.bytes + [0] })
    }
}

extension KernelReply where Answer == Answers.Usage {
    package consuming func succeed(_ statistics: FileSystemStatistics) {
        let blockSize = UInt32(clamping: statistics.blockSize)
        var shim = fuseshim_statistics(
            blocks: statistics.blocks, free_blocks: statistics.freeBlocks,
            available_blocks: statistics.availableBlocks, files: statistics.files, free_files: statistics.freeFiles,
            block_size: blockSize, fragment_size: blockSize, name_length: 255)
        _ = answer { fuseshim_reply_statistics($0, &shim) }
    }
}

extension fuseshim_opened {
    fileprivate init(_ handle: FileHandle, _ options: OpenOptions, _ backing: BackingID?) {
        self.init(handle: handle.rawValue, flags: options.rawValue, backing: backing?.rawValue ?? 0)
    }
}
