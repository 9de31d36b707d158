import CFUSEShim
import SystemPackage

/// The data of a WRITE request, in memory or in a pipe. Valid only until `write` returns. Every byte can be consumed
/// once: a later call continues after the bytes that an earlier call has consumed.
package struct WriteData: ~Copyable {
    private let data: OpaquePointer
    /// Whether the kernel writes back dirty pages.
    private let isFromCache: Bool

    init(_ data: OpaquePointer, isFromCache: Bool) {
        self.data = data
        self.isFromCache = isFromCache
    }

    /// The number of bytes left to consume.
    package var count: Int { fuseshim_data_size(data) }

    /// Moves all bytes into a file, by splicing where the kernel can.
    ///
    /// - Returns: the number of bytes moved. Fewer than all may be moved for a process, whose next write gets the error. Dirty pages are
    ///   moved completely, or the error is thrown: the kernel takes any count for all of them, and does not write them again
    ///   (`fuse_writepage_end`). (splice, pwrite)
    package borrowing func copy(to file: FileDescriptor, at offset: Int64) throws(Errno) -> Int {
        var done = 0
        repeat {
            let moved = fuseshim_data_write(data, file.rawValue, offset + Int64(done))
            if moved < 0 { throw Errno(rawValue: Int32(-moved)) }
            if moved == 0, isFromCache, count > 0 { throw .ioError }
            done += Int(moved)
        } while isFromCache && count > 0
        return done
    }

    /// Copies all bytes into memory, for a write that has to wait.
    package borrowing func bytes() throws(Errno) -> [UInt8] {
        var moved: Int64 = 0
        let capacity = count
        let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, filled in
            moved = capacity == 0 ? 0 : fuseshim_data_read(data, buffer.baseAddress, capacity)
            filled = Int(max(moved, 0))
        }
        if moved < 0 { throw Errno(rawValue: Int32(-moved)) }
        return bytes
    }
}
