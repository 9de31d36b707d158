import CFUSEShim
import SystemPackage

/// The bytes of a write request, in memory or still in a pipe. Good only until `write` returns, and every byte can be
/// taken once: what one call has taken, the next does not see.
package struct WriteData: ~Copyable {
    private let data: OpaquePointer

    init(_ data: OpaquePointer) { self.data = data }

    /// How many bytes are left to take.
    package var count: Int { fuseshim_data_size(data) }

    /// Moves all bytes into a file at an offset, without copying them through memory where the kernel can.
    ///
    /// - Returns: how many were moved. (splice, pwrite)
    package borrowing func copy(to file: FileDescriptor, at offset: Int64) throws(Errno) -> Int {
        let moved = fuseshim_data_write(data, file.rawValue, offset)
        if moved < 0 { throw Errno(rawValue: Int32(-moved)) }
        return Int(moved)
    }

    /// All bytes, in memory: for a write that has to wait.
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
