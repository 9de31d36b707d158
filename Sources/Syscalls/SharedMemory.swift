import CSyscalls
import Glibc
import SystemPackage

extension FileDescriptor {
    /// Creates an empty file in memory. (memfd_create)
    ///
    /// - Parameter name: shown in /proc.
    package static func inMemory(named name: String) throws(Errno) -> FileDescriptor {
        let number = yonder_memfd_create(name)
        guard number >= 0 else { throw Errno.current }
        return FileDescriptor(rawValue: number)
    }
}

/// Memory that outlives the process: a memfd, mapped shared. A process that inherits the descriptor finds every store that a
/// killed process made, in the order of the program.
///
/// Every access is checked against the bounds. It is not safe for concurrent use.
package struct SharedMemory: ~Copyable {
    /// Closed with the value.
    package let descriptor: FileDescriptor
    /// The size in bytes.
    @usableFromInline package private(set) var count: Int
    @usableFromInline package private(set) var start: UnsafeMutableRawPointer
    #if DEBUG
        /// Called after each change of the memory. For tests that look at what a killed process leaves.
        package var didStore: (() -> Void)?
    #endif

    /// Creates zeroed memory. (memfd_create)
    ///
    /// - Parameters:
    ///   - name: shown in /proc.
    ///   - count: the size in bytes, more than 0.
    package init(named name: String, count: Int) throws(Errno) {
        let file = try FileDescriptor.inMemory(named: name)
        let mapping = try Self.mapOrClose(file, newCount: count)
        self.init(file, mapping)
    }

    /// Maps the memory of an inherited descriptor, which belongs to the value from here on.
    ///
    /// - Throws: the error of fstat(2) or mmap(2); EINVAL for memory without bytes. The descriptor is then closed.
    package init(adopting descriptor: FileDescriptor) throws(Errno) {
        self.init(descriptor, try Self.mapOrClose(descriptor))
    }

    private init(_ descriptor: FileDescriptor, _ mapping: (start: UnsafeMutableRawPointer, count: Int)) {
        self.descriptor = descriptor
        (start, count) = mapping
    }

    deinit {
        munmap(start, count)
        try? descriptor.close()
    }

    /// Enlarges the memory by zeroed bytes. (ftruncate)
    package mutating func grow(to newCount: Int) throws(Errno) {
        guard newCount > count else { return }
        guard ftruncate(descriptor.rawValue, newCount) == 0 else { throw Errno.current }
        let newStart = try Self.map(descriptor, count: newCount)
        munmap(start, count)
        start = newStart
        count = newCount
        noteStore()
    }

    /// Zeroes bytes and releases their pages. (fallocate with FALLOC_FL_PUNCH_HOLE)
    package mutating func clear(_ range: Range<Int>) throws(Errno) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the shared memory")
        guard !range.isEmpty else { return }
        guard yonder_punch_hole(descriptor.rawValue, Int64(range.lowerBound), Int64(range.count)) == 0 else {
            throw Errno.current
        }
        noteStore()
    }

    /// The 64-bit word at an offset, which is a multiple of 8.
    @inlinable package subscript(offset: Int) -> UInt64 {
        get {
            precondition(offset >= 0 && offset & 7 == 0 && offset <= count - 8, "outside of the shared memory")
            return yonder_load_word(start + offset)
        }
        set {
            precondition(offset >= 0 && offset & 7 == 0 && offset <= count - 8, "outside of the shared memory")
            yonder_store_word(start + offset, newValue)
            noteStore()
        }
    }

    package func bytes(in range: Range<Int>) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the shared memory")
        return Array(UnsafeRawBufferPointer(start: start + range.lowerBound, count: range.count))
    }

    /// Stores bytes, in no particular order.
    package mutating func store(_ bytes: [UInt8], at offset: Int) {
        precondition(offset >= 0 && bytes.count <= count - offset, "outside of the shared memory")
        UnsafeMutableRawBufferPointer(start: start + offset, count: bytes.count).copyBytes(from: bytes)
        noteStore()
    }

    private static func map(_ descriptor: FileDescriptor, count: Int) throws(Errno) -> UnsafeMutableRawPointer {
        guard let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.rawValue, 0),
            start != MAP_FAILED
        else { throw Errno.current }
        return start
    }

    /// Maps all of a file, or closes it.
    private static func mapOrClose(
        _ descriptor: FileDescriptor, newCount: Int? = nil
    ) throws(Errno) -> (start: UnsafeMutableRawPointer, count: Int) {
        do throws(Errno) {
            if let newCount, ftruncate(descriptor.rawValue, newCount) != 0 { throw Errno.current }
            let count = Int(try descriptor.lengths().size)
            return (try map(descriptor, count: count), count)
        } catch {
            try? descriptor.close()
            throw error
        }
    }

    @inlinable package func noteStore() {
        #if DEBUG
            didStore?()
        #endif
    }
}
