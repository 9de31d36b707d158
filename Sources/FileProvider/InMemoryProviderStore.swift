import Foundation

/// A ``ProviderStore`` that lives no longer than the process: for tests, and for a provider that is tried out before its
/// domain exists.
public final class InMemoryProviderStore: ProviderStore, @unchecked Sendable {
    // Unchecked: `records` is only touched under `lock`. A Mutex would have every result of a body be Sendable.
    private let lock = NSLock()
    private let records = Records()

    /// An empty store.
    public init() {}

    public func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value {
        try lock.withLock { try body(records) }
    }

    public func write<Value>(
        _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
    ) throws -> Value {
        try lock.withLock {
            records.replaced = []
            do {
                return try body(records)
            } catch {
                records.rollBack()
                throw error
            }
        }
    }

    private final class Records: ProviderStoreTransaction {
        private var records: [String: [ProviderStoreKey: [UInt8]]] = [:]
        /// What the transaction has replaced, in its order.
        var replaced: [(namespace: String, key: ProviderStoreKey, record: [UInt8]?)] = []

        func encodedRecord(at key: ProviderStoreKey, in namespace: String) -> [UInt8]? { records[namespace]?[key] }

        func visitEncodedRecords(
            in namespace: String, prefix: ProviderStoreKey, _ visit: (ProviderStoreKey, [UInt8]) throws -> Void
        ) throws {
            let found = (records[namespace] ?? [:]).filter { $0.key.bytes.starts(with: prefix.bytes) }
            for (key, record) in found.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }) {
                try visit(key, record)
            }
        }

        func setEncodedRecord(_ record: [UInt8]?, at key: ProviderStoreKey, in namespace: String) {
            replaced.append((namespace, key, records[namespace]?[key]))
            records[namespace, default: [:]][key] = record
        }

        func rollBack() {
            for (namespace, key, record) in replaced.reversed() { records[namespace]?[key] = record }
        }
    }
}
