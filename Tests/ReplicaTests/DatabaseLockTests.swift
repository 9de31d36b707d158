import Foundation
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

@Suite struct DatabaseLockTests {
    /// How many locks this process has on a file (proc_locks(5)). A reading may omit some while other processes lock and
    /// unlock, so the largest of several counts.
    private func locks(on path: FilePath) throws -> Int {
        let inode = try FileStatus(at: path).inode
        let counts = try (0..<20).map { _ in
            try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").count { line in
                let fields = line.split(separator: " ")
                return fields.contains("\(getpid())") && fields.contains { $0.hasSuffix(":\(inode)") }
            }
        }
        return counts.max() ?? 0
    }

    @Test("WRITE-1: a database that is open keeps its locks while the domain's record is read beside it")
    func recordOfAnOpenDatabase() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("first")], open: fixture.open)
        let path = replica.directory.appending(ReplicaDatabase.fileName)
        let before = try locks(on: path)
        try #require(before > 0)
        _ = try DomainRecord(ofReplicaIn: replica.directory)
        try DomainRecord.refuseNewerReplica(in: replica.directory)
        #expect(DatabaseHeader(at: path) == nil)
        #expect(try locks(on: path) == before)
        try replica.close()
        #expect(DatabaseHeader(at: path) != nil)
    }
}
