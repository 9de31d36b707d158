import FileProvider
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// Writes of a provider after the end of its fetch.
@Suite struct DownloadSinkTests {
    private static let size: Int64 = 1 << 30

    private func run(_ test: (DownloadSink, FileDescriptor) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let source = try directory.openFile("source")
        defer { try? source.close() }
        let content = try directory.openFile("content")
        defer { try? content.close() }
        let sink = DownloadSink(
            identifier: "f", size: Self.size, descriptor: content, gate: WriteGate(), arrived: { _ in },
            overflowed: { _ in }, paced: { _ in })
        try await test(sink, source)
    }

    @Test("READ-12: what a provider writes after the end of its fetch is refused") func lateWrites() async throws {
        try await run { sink, source in
            try source.writeAll(([1, 2, 3] as [UInt8]).span.bytes, at: 0)
            try sink.write(from: source, at: 0, count: 3)
            try sink.write([4], at: 3)
            #expect(try sink.descriptor.readBytes(at: 0, count: 10) == [1, 2, 3, 4])
            sink.gate.close()
            try sink.descriptor.writeAll(([5, 6, 7, 8] as [UInt8]).span.bytes, at: 0)
            #expect(throws: Errno.canceled) { try sink.write(from: source, at: 0, count: 3) }
            #expect(throws: Errno.canceled) { try sink.write([4], at: 3) }
            #expect(try sink.descriptor.readBytes(at: 0, count: 10) == [5, 6, 7, 8])
        }
    }

    @Test("READ-12: a copy that is in progress at the end of its fetch writes nothing after it")
    func lateCopy() async throws {
        try await run { sink, _ in
            // No file system shares its blocks, and it is far longer than what is copied before the gate closes.
            let zeros = try FileDescriptor.open("/dev/zero", .readOnly, options: [.closeOnExec])
            defer { try? zeros.close() }
            let copy = Task.detached { try sink.write(from: zeros, at: 0, count: Self.size) }
            #expect(try await eventually { try sink.descriptor.lengths().size > 0 })
            sink.gate.close()
            try sink.descriptor.setLength(0)
            await #expect(throws: Errno.canceled) { try await copy.value }
            #expect(try sink.descriptor.lengths().size == 0)
        }
    }
}
