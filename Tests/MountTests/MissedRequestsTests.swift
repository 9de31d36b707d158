import Replica
import Syscalls
import SystemPackage
import Testing

@testable import Mount
@testable import Volume

/// What the keeper has noted while no daemon ran.
@Suite struct MissedRequestsTests {
    /// Records as the keeper writes them.
    private func bytes(_ records: [[UInt64]]) -> [UInt8] {
        records.joined().flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) } }
    }

    private func file(_ bytes: [UInt8]) throws -> FileDescriptor {
        let file = try FileDescriptor.inMemory(named: "missed")
        try file.writeAll(bytes)
        return file
    }

    private func contents(of file: FileDescriptor) throws -> [UInt8] {
        try FilePath("/proc/self/fd/\(file.rawValue)").contents()
    }

    private func count(_ missed: MissedRequests.Record, in files: OpenFiles) {
        guard case .release(let node, _, let request) = missed else { return }
        _ = files.release(
            InodeNumber(rawValue: Int64(node)), forWriting: false,
            request: RequestNumber(rawValue: request, isResent: true))
    }

    @Test("TAKEOVER-8: a daemon that is killed while it counts more closed files than it remembers counts none twice")
    func killedMeanwhile() throws {
        let number = InodeNumber(rawValue: 5)
        let files = OpenFiles(table: try HandleTable(ringCapacity: 8))
        for _ in 0..<13 { _ = files.retain(number, forWriting: false) }
        let missed = try file(bytes((1...12).map { [18, 5, 0, $0 * 2] }))
        defer { try? missed.close() }
        var (taken, left) = (0, [UInt8]())
        try MissedRequests(in: missed).takeAll(batchSize: 4) { record in
            // The process is killed after the tenth.
            guard taken < 10 else { return }
            count(record, in: files)
            taken += 1
            if taken == 10 { left = (try? contents(of: missed)) ?? [] }
        }
        #expect(taken == 10 && !left.isEmpty)

        let next = OpenFiles(table: try HandleTable.adopt(files.tableDescriptor.duplicate()))
        let rest = try file(left)
        defer { try? rest.close() }
        try MissedRequests(in: rest).takeAll(batchSize: 4) { count($0, in: next) }
        #expect(next.isOpen(number))
        #expect(next.release(number, forWriting: false) != nil, "more than one handle is left")
    }

    @Test("a forgotten inode is removed from the file before it is counted, and half a record is dropped")
    func removesFirst() throws {
        let records: [[UInt64]] = [[2, 10, 1, 0], [18, 11, 2, 4], [2, 12, 3, 0], [99, 0, 0, 0], [2, 13, 5, 0]]
        let missed = try file(bytes(records) + [2, 0, 0])
        defer { try? missed.close() }
        var found: Set<MissedRequests.Record> = []
        try MissedRequests(in: missed).takeAll(batchSize: 2) { record in
            found.insert(record)
            guard case .forget(let node, _) = record else { return }
            let index = records.firstIndex { $0[1] == node } ?? 0
            let size = (try? contents(of: missed))?.count ?? .max
            #expect(size <= index * 32)
        }
        #expect(
            found == [
                .forget(node: 10, lookups: 1), .release(node: 11, flags: 2, request: 4),
                .forget(node: 12, lookups: 3), .forget(node: 13, lookups: 5),
            ])
        #expect(try contents(of: missed) == [])
    }
}
