import FileProvider
import ReplicaTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import Replica
@testable import Volume

/// An open during a transaction that has found the file closed.
@Suite("claimed inodes") struct ClaimedInodeTests: VolumeSuite {
    /// The open inodes of a volume, with a request of a process right after each question of a transaction.
    private struct Interrupted: OpenInodes {
        let base: any OpenInodes
        let request: @Sendable () -> Void

        func isOpen(_ number: InodeNumber) -> Bool {
            defer { request() }
            return base.isOpen(number)
        }

        func isOpenAndUsed(_ number: InodeNumber) -> Bool {
            defer { request() }
            return base.isOpenAndUsed(number)
        }

        func claim(_ number: InodeNumber) { base.claim(number) }
        func endClaims(_ numbers: [InodeNumber]) { base.endClaims(numbers) }
        func whenUnclaimed(_ number: InodeNumber, _ body: @escaping @Sendable () -> Void) {
            base.whenUnclaimed(number, body)
        }
    }

    /// A kernel that is told what to forget, with a request of a process right before.
    private struct Told: KernelCache {
        let request: @Sendable () -> Void

        func forget(_ effects: ReplicaEffects) { request() }
    }

    let own: VolumeFixture

    init() throws { own = try VolumeFixture() }

    /// A materialized file, and what an open says that comes in the middle of a transaction.
    private func openDuring(
        _ transaction: (InodeNumber, any OpenInodes) async throws -> Void
    ) async throws -> (node: UInt64, error: VolumeError?) {
        try await replica.list([.file("a", size: 10, version: "1")], open: volume.openInodes)
        let node = try volume.lookup("a", in: 1).node
        try await replica.fill(InodeNumber(node))
        let answer = Mutex<Result<OpenGrant, VolumeError>?>(nil)
        let open = Interrupted(base: volume.openInodes) { [volume, caller] in
            let result = Result { () throws(VolumeError) in
                try volume.open(node, for: .reading, caller: caller, registry: nil)
            }
            answer.withLock { $0 = $0 ?? result }
        }
        try await transaction(InodeNumber(node), open)
        switch try #require(answer.withLock { $0 }) {
        case .success: return (node, nil)
        case .failure(let error): return (node, error)
        }
    }

    @Test(
        "EVICT-9: a process that opens a file while it is evicted waits for that, and does not get the content that goes"
    )
    func openDuringEviction() async throws {
        let (node, error) = try await openDuring { number, open in
            let (freed, _) = try await replica.evictFile(number, open: open)
            #expect(freed == 10)
        }
        #expect(error == .needs(.claim(of: InodeNumber(node))))
        // It is dataless now: its reader needs the content, and a writer all of it.
        _ = try volume.open(node, for: .reading, caller: caller, registry: nil)
        #expect(throws: VolumeError.needs(.content(of: InodeNumber(node), version: Array("1".utf8), range: 0..<10))) {
            try volume.read(node, at: 0, count: 10, isProvided: false)
        }
        #expect(
            throws: VolumeError.needs(.whole(of: InodeNumber(node)))
        ) {
            try volume.open(
                node, for: OpenIntent(isWriting: true, isTruncating: false), caller: caller, registry: nil)
        }
    }

    @Test("a process that opens a file while a remote change is applied gets the new version")
    func openDuringRemoteChange() async throws {
        let (node, error) = try await openDuring { _, open in
            try await replica.change([.file("a", size: 20, version: "2")], open: open)
        }
        #expect(error == .needs(.claim(of: InodeNumber(node))))
        _ = try volume.open(node, for: .reading, caller: caller, registry: nil)
        #expect(throws: VolumeError.needs(.content(of: InodeNumber(node), version: Array("2".utf8), range: 0..<20))) {
            try volume.read(node, at: 0, count: 20, isProvided: false)
        }
    }

    @Test("OPEN-1: nor does it get the new version before the kernel is told to forget the old one")
    func openBeforeTheKernelIsTold() async throws {
        try await replica.list([.file("a", size: 10, version: "1")], open: volume.openInodes)
        let node = try volume.lookup("a", in: 1).node
        let answer = Mutex<Result<OpenGrant, VolumeError>?>(nil)
        let kernel = Told { [volume, caller] in
            let result = Result { () throws(VolumeError) in
                try volume.open(node, for: .reading, caller: caller, registry: nil)
            }
            answer.withLock { $0 = result }
        }
        // Of an empty file the kernel would keep the old pages and the old size.
        _ = try await replica.ingest(open: volume.openInodes, telling: kernel) { ingestion in
            try ingestion.changes.apply(
                ChangeBatch(updated: [.file("a", size: 0, version: "2")], anchor: SyncAnchor("x")))
        }
        let result = answer.withLock { $0 }
        let meanwhile = try #require(result)
        #expect(throws: VolumeError.needs(.claim(of: InodeNumber(node)))) { try meanwhile.get() }
        let grant = try volume.open(node, for: .reading, caller: caller, registry: nil, isInvalidating: { true })
        #expect(grant == .cachedAnew)
        volume.close(node, wasWriting: false, registry: nil)
    }

    @Test("a reader waits until the last transaction that has claimed a file has ended") func waits() throws {
        let files = try OpenFiles()
        let number = InodeNumber(rawValue: 5)
        let calls = Atomic(0)
        files.whenUnclaimed(number) { calls.add(1, ordering: .relaxed) }
        #expect(calls.load(ordering: .relaxed) == 1)
        files.claim(number)
        files.claim(number)
        files.whenUnclaimed(number) { calls.add(1, ordering: .relaxed) }
        files.endClaims([number])
        #expect(files.isClaimed(number) && calls.load(ordering: .relaxed) == 1)
        files.endClaims([number])
        #expect(!files.isClaimed(number) && calls.load(ordering: .relaxed) == 2)
    }
}
