import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

@Suite(.tags(.server), .enabled(if: SFTPFolder.isInstalled)) struct SFTPInterruptedReadTests {
    private static let path = RemotePath(["file"])
    private static let size: Int64 = 6 << 20
    private static let bytes = (0..<Int(size)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

    /// Collects content, does something at one of the writes, and notes where the bytes begin again.
    private final class InterruptedSink: ContentSink {
        private struct State {
            var writes = 0
            var end: Int64 = 0
            var confirmed: Int64 = 0
            var restart: (offset: Int64, confirmed: Int64)?
        }

        let content = CollectingSink()
        private let state = Mutex(State())
        private let number: Int
        private let interrupt: @Sendable () throws -> Void

        /// - Parameter number: the write before which `interrupt` is called, from 1 on.
        init(at number: Int, _ interrupt: @escaping @Sendable () throws -> Void) {
            (self.number, self.interrupt) = (number, interrupt)
        }

        /// The first byte that was written again, and the first one whose version was not confirmed by then.
        var restart: (offset: Int64, confirmed: Int64)? { state.withLock { $0.restart } }

        func write(_ bytes: RawSpan, at offset: Int64) throws {
            let end = offset + Int64(bytes.byteCount)
            let isInterrupted = state.withLock { state in
                state.writes += 1
                if offset < state.end, state.restart == nil { state.restart = (offset, state.confirmed) }
                state.end = end
                return state.writes == number
            }
            if isInterrupted { try interrupt() }
            try content.write(bytes, at: offset)
        }

        func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
            throw Errno.notSupported
        }

        func confirmVersion(of range: Range<Int64>) {
            state.withLock { $0.confirmed = range.upperBound }
            content.confirmVersion(of: range)
        }
    }

    private func withFile(_ test: (SFTPRemote, SFTPFolder, _ tag: [UInt8]) async throws -> Void) async throws {
        let folder = try SFTPFolder()
        try await folder.withRemote { remote in
            try await folder.write(Self.bytes, to: "file")
            try await test(remote, folder, try await remote.entry(at: Self.path).tag)
        }
    }

    @Test(
        "READ-1: SFTP confirms what has come while more comes",
        arguments: [nil, 1 << 20..<5 << 20] as [Range<Int64>?])
    func confirmed(range: Range<Int64>?) async throws {
        try await withFile { remote, _, tag in
            let sink = CollectingSink()
            _ = try await remote.read(Self.path, tag: tag, range: range, into: sink)
            let wanted = range ?? 0..<Self.size
            let bytes = Array(Self.bytes[Int(wanted.lowerBound)..<Int(wanted.upperBound)])
            #expect(try sink.bytes(in: wanted) == bytes)
            let confirmed = sink.confirmed.ranges
            #expect(confirmed.count == 1 && confirmed.first?.lowerBound == wanted.lowerBound, "\(confirmed)")
        }
    }

    @Test("READ-1: a read over SFTP whose session breaks goes on after the confirmed bytes")
    func brokenSession() async throws {
        try await withFile { remote, _, tag in
            let session = try await remote.connection.session()
            let sink = InterruptedSink(at: 15) { session.close() }
            _ = try await remote.read(Self.path, tag: tag, range: nil, into: sink)
            #expect(try sink.content.bytes(in: 0..<Self.size) == Self.bytes)
            let restart = try #require(sink.restart)
            #expect(restart.offset > 0 && restart.offset == restart.confirmed, "\(restart)")
        }
    }

    @Test("READ-1: SFTP confirms nothing of a file that is written while it is read")
    func writtenFile() async throws {
        try await withFile { remote, folder, tag in
            let file = folder["file"]
            let sink = InterruptedSink(at: 2) {
                let writer = try FileDescriptor.open(FilePath(file), .writeOnly)
                try writer.closeAfter { _ = try writer.writeAll([1, 2, 3]) }
            }
            let code = await failureCode { _ = try await remote.read(Self.path, tag: tag, range: nil, into: sink) }
            #expect(code == .versionNoLongerAvailable)
            #expect(sink.content.confirmed.isEmpty)
        }
    }
}
