import CSyscalls
import Glibc
import SystemPackage

/// Reads and writes of content files.
extension FileDescriptor {
    /// Writes all bytes at an offset. (pwrite)
    package func writeAll(_ bytes: RawSpan, at offset: Int64) throws(Errno) {
        var done = 0
        while done < bytes.byteCount {
            let count = bytes.extracting(done...).withUnsafeBytes {
                Glibc.pwrite(rawValue, $0.baseAddress, $0.count, off_t(offset) + off_t(done))
            }
            if count < 0 {
                guard Errno.current == .interrupted else { throw Errno.current }
            } else {
                done += count
            }
        }
    }

    /// Reads up to `count` bytes at an offset; fewer only at the end of the file. (pread)
    package func readBytes(at offset: Int64, count: Int) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = Glibc.pread(
                    rawValue, buffer.baseAddress! + filled, count - filled, off_t(offset) + off_t(filled))
                if got < 0 {
                    if Errno.current == .interrupted { continue }
                    failure = Errno.current
                    return
                }
                if got == 0 { return }
                filled += got
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// The next bytes of a pipe, at most `count`; none at its end and after an error. (read)
    package func nextBytes(atMost count: Int) -> [UInt8] {
        let bytes = try? [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try self.read(into: .init(buffer))
        }
        return bytes ?? []
    }

    /// Whether the file has these bytes at an offset. (pread)
    package func holds(_ bytes: RawSpan, at offset: Int64) throws(Errno) -> Bool {
        let own = try readBytes(at: offset, count: bytes.byteCount)
        guard own.count == bytes.byteCount else { return false }
        return bytes.withUnsafeBytes { other in
            own.withUnsafeBytes { own in own.isEmpty || memcmp(own.baseAddress!, other.baseAddress!, own.count) == 0 }
        }
    }

    /// Copies bytes from another file and keeps its holes: by sharing blocks where the file system can
    /// (FICLONERANGE), else through memory in large pieces. `copy_file_range` without shared blocks would copy page
    /// by page and leave small folios in the page cache, which slow down random reads.
    ///
    /// - Parameter gate: passed by each write to this file, and by no read of the source, which may hang.
    /// - Returns: the number of bytes copied; fewer than `count` only at the end of the source.
    package func copy(
        from source: FileDescriptor, at sourceOffset: Int64, to offset: Int64, count: Int64,
        through gate: WriteGate = WriteGate()
    ) throws(Errno) -> Int64 {
        var done: Int64 = 0
        // In pieces, because the gate waits for one when it is closed, and the kernel may have to write the source to the disk first. It reads
        // only a source on the file system of this file.
        while done < count {
            let length = min(count - done, Self.clonePiece)
            let isCloned = try gate.pass {
                yonder_clone_range(source.rawValue, sourceOffset + done, rawValue, offset + done, length) == 0
            }
            guard isCloned else { break }
            done += length
        }
        while done < count {
            switch try source.extent(at: sourceOffset + done, limit: count - done) {
            case .hole(0): return done
            case .hole(let length):
                try gate.pass { () throws(Errno) in try clear(from: offset + done, count: length) }
                done += length
            case .data(let length):
                let copied = try copyBytes(
                    from: source, at: sourceOffset + done, to: offset + done, count: length, through: gate)
                done += copied
                if copied < length { return done }
            }
        }
        return done
    }

    private enum Run {
        /// A length of 0 means the end of the file.
        case hole(Int64)
        case data(Int64)
    }

    /// The data or hole at an offset, up to a limit.
    private func extent(at offset: Int64, limit: Int64) throws(Errno) -> Run {
        let next: Int64
        do throws(Errno) {
            next = try seek(to: .data, from: offset)
        } catch {
            // A file system without SEEK_DATA has data everywhere.
            guard error == .noSuchAddressOrDevice else { return .data(limit) }
            return .hole(max(0, min(limit, try lengths().size - offset)))
        }
        if next > offset { return .hole(min(limit, next - offset)) }
        let end = (try? seek(to: .hole, from: offset)) ?? offset
        return .data(end > offset ? min(limit, end - offset) : limit)
    }

    /// Makes a range read as zeros, by deallocating it where the file system can.
    private func clear(from offset: Int64, count: Int64) throws(Errno) {
        let end = offset + count
        let size = try lengths().size
        if offset < size {
            let data: Int64?
            do throws(Errno) {
                data = try seek(to: .data, from: offset)
            } catch {
                data = error == .noSuchAddressOrDevice ? nil : offset
            }
            let kept = min(end, size)
            if let data, data < kept, yonder_punch_hole(rawValue, data, kept - data) != 0 {
                try writeZeros(from: data, count: kept - data)
            }
        }
        if size < end { try setLength(end) }
    }

    private func writeZeros(from offset: Int64, count: Int64) throws(Errno) {
        let zeros = [UInt8](repeating: 0, count: Int(min(count, Self.copyPiece)))
        var done: Int64 = 0
        while done < count {
            let length = min(Int64(zeros.count), count - done)
            try writeAll(zeros.span.bytes.extracting(0..<Int(length)), at: offset + done)
            done += length
        }
    }

    private func copyBytes(
        from source: FileDescriptor, at sourceOffset: Int64, to offset: Int64, count: Int64, through gate: WriteGate
    ) throws(Errno) -> Int64 {
        var done: Int64 = 0
        var failure: Errno?
        withUnsafeTemporaryAllocation(byteCount: Int(min(count, Self.copyPiece)), alignment: 4096) { piece in
            while done < count {
                let got = Glibc.pread(
                    source.rawValue, piece.baseAddress, min(piece.count, Int(count - done)), off_t(sourceOffset + done))
                if got < 0 {
                    if Errno.current == .interrupted { continue }
                    failure = Errno.current
                    return
                }
                if got == 0 { return }
                do {
                    try gate.pass { () throws(Errno) in
                        try writeAll(UnsafeRawBufferPointer(rebasing: piece[..<got]).bytes, at: offset + done)
                    }
                } catch {
                    failure = error as? Errno
                    return
                }
                done += Int64(got)
            }
        }
        if let failure { throw failure }
        return done
    }

    private static let copyPiece: Int64 = 1 << 20
    private static let clonePiece: Int64 = 64 << 20

    /// The next offset that holds data, or a hole, at or after an offset. (lseek)
    ///
    /// - Throws: ENXIO at or beyond the end of the file.
    package func seek(to kind: Extent, from offset: Int64) throws(Errno) -> Int64 {
        let found = kind == .data ? yonder_seek_data(rawValue, offset) : yonder_seek_hole(rawValue, offset)
        if found < 0 { throw Errno.current }
        return found
    }

    /// The target of ``seek(to:from:)``.
    package enum Extent: Sendable {
        case data
        case hole
    }

    /// The file's size and allocated space in bytes. (fstat)
    package func lengths() throws(Errno) -> (size: Int64, allocated: Int64) {
        var status = Glibc.stat()
        guard fstat(rawValue, &status) == 0 else { throw Errno.current }
        return (Int64(status.st_size), Int64(status.st_blocks) * 512)
    }

    /// Whether each write appends to the file. (fcntl with F_GETFL)
    package var appends: Bool {
        let flags = fcntl(rawValue, F_GETFL)
        return flags >= 0 && flags & O_APPEND != 0
    }

    /// Sets the file's size; an extension is a hole. (ftruncate)
    package func setLength(_ length: Int64) throws(Errno) {
        while Glibc.ftruncate(rawValue, off_t(length)) != 0 {
            guard Errno.current == .interrupted else { throw Errno.current }
        }
    }

    /// The mode that allocates space and does not make the file longer. (FALLOC_FL_KEEP_SIZE of linux/falloc.h)
    package static let keepingSize: Int32 = 0x01

    /// Allocates or deallocates space, by the mode of `fallocate(2)`.
    package func allocate(mode: Int32, offset: Int64, length: Int64) throws(Errno) {
        while yonder_fallocate(rawValue, mode, offset, length) != 0 {
            guard Errno.current == .interrupted else { throw Errno.current }
        }
    }

    /// Makes the file's data durable, and the metadata needed to read it. (fdatasync)
    package func synchronize() throws(Errno) {
        guard fdatasync(rawValue) == 0 else { throw Errno.current }
    }

    /// Starts the writeback of a range, before a ``synchronize()``. Guarantees nothing, and may block on the disk.
    /// (sync_file_range)
    package func beginWritingBack(from offset: Int64, count: Int64) {
        yonder_begin_writing_back(rawValue, offset, count)
    }

    /// Makes all data of the file system of this file durable. (syncfs)
    package func syncFileSystem() throws(Errno) {
        guard yonder_syncfs(rawValue) == 0 else { throw Errno.current }
    }
}

extension Errno {
    /// The error of the last failed call of this thread.
    static var current: Errno { Errno(rawValue: errno) }
}
