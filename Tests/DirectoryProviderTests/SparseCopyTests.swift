import Syscalls
import SystemPackage
import TestSupport
import Testing

/// Copies of files with holes.
@Suite struct SparseCopyTests {
    private func run(_ test: (FileDescriptor, FileDescriptor) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let source = try directory.openFile("source")
        defer { try? source.close() }
        let copy = try directory.openFile("copy")
        defer { try? copy.close() }
        try test(source, copy)
    }

    private let half: Int64 = 8 << 20

    @Test func holesStayHolesAndTheLengthIsTheSame() throws {
        try run { source, copy in
            try source.writeAll(([1, 2, 3] as [UInt8]).span.bytes, at: half)
            try source.setLength(2 * half)
            #expect(try copy.copy(from: source, at: 0, to: 0, count: 2 * half) == 2 * half)
            let lengths = try copy.lengths()
            #expect(lengths.size == 2 * half)
            #expect(lengths.allocated < 1 << 20)
            #expect(try copy.readBytes(at: half, count: 4) == [1, 2, 3, 0])
        }
    }

    @Test func holesOfTheSourceOverwriteOldBytes() throws {
        try run { source, copy in
            try source.writeAll(([9] as [UInt8]).span.bytes, at: half)
            let old = [UInt8](repeating: 7, count: Int(half) + 10)
            try copy.writeAll(old.span.bytes, at: 0)
            #expect(try copy.copy(from: source, at: 0, to: 0, count: half) == half)
            #expect(try copy.readBytes(at: 0, count: Int(half)).allSatisfy { $0 == 0 })
            #expect(try copy.readBytes(at: half, count: 10) == [UInt8](repeating: 7, count: 10))
        }
    }

    @Test func theEndOfTheSourceEndsTheCopy() throws {
        try run { source, copy in
            try source.setLength(5000)
            #expect(try copy.copy(from: source, at: 0, to: 0, count: 9000) == 5000)
            #expect(try copy.copy(from: source, at: 6000, to: 6000, count: 10) == 0)
            #expect(try copy.lengths().size == 5000)
        }
    }
}
