import Synchronization

/// Which inodes are open, for one transaction: those that it asks about are claimed until it has ended.
final class ClaimingOpenInodes: OpenInodes {
    private let base: any OpenInodes
    private let claimed = Mutex<[InodeNumber]>([])

    private init(_ base: any OpenInodes) { self.base = base }

    /// Runs a body, which returns when its transaction has ended.
    static func run<Value>(
        _ base: any OpenInodes, _ body: (ClaimingOpenInodes) async throws -> Value
    ) async throws -> Value {
        let claiming = ClaimingOpenInodes(base)
        defer { base.endClaims(claiming.claimed.withLock { $0 }) }
        return try await body(claiming)
    }

    /// As above, for a transaction on the calling thread.
    static func run<Value>(_ base: any OpenInodes, _ body: (ClaimingOpenInodes) throws -> Value) rethrows -> Value {
        let claiming = ClaimingOpenInodes(base)
        defer { base.endClaims(claiming.claimed.withLock { $0 }) }
        return try body(claiming)
    }

    func claim(_ number: InodeNumber) {
        base.claim(number)
        claimed.withLock { $0.append(number) }
    }

    func isOpen(_ number: InodeNumber) -> Bool {
        claim(number)
        return base.isOpen(number)
    }

    func isOpenAndUsed(_ number: InodeNumber) -> Bool {
        claim(number)
        return base.isOpenAndUsed(number)
    }

    func isOpenForWriting(_ number: InodeNumber) -> Bool { base.isOpenForWriting(number) }

    func keepsNameless(_ number: InodeNumber) -> Bool { base.keepsNameless(number) }
}
