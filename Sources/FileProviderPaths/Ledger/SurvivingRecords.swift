import FileProvider
import Synchronization

/// The records of one namespace of the provider's store, held in memory: reading costs no query.
package final class SurvivingRecords<Record: Codable & Sendable>: Sendable {
    private let store: ReportingStore
    private let namespace: ProviderStoreNamespace<Record>
    private let records: Mutex<[[UInt8]: Record]>

    package init(_ namespace: String, in store: ReportingStore) {
        self.store = store
        self.namespace = ProviderStoreNamespace(namespace)
        let found = store.all(in: self.namespace).map { ($0.key.bytes, $0.record) }
        records = Mutex(Dictionary(found, uniquingKeysWith: { $1 }))
    }

    /// All records, in no order.
    package var all: [(key: [UInt8], record: Record)] { records.withLock { $0.map { ($0.key, $0.value) } } }

    package subscript(_ key: [UInt8]) -> Record? { records.withLock { $0[key] } }

    /// Stores a record before something is done that depends on it. When that fails, nothing has changed.
    package func save(_ key: [UInt8], _ record: Record, _ durability: ProviderStoreDurability = .committed) throws {
        try records.withLock { records in
            try store.store.put(record, at: ProviderStoreKey(key), in: namespace, durability: durability)
            records[key] = record
        }
    }

    /// As ``save(_:_:_:)``, but no caller waits for it that only reads. Nothing else stores or removes the record meanwhile.
    package func saveLarge(_ key: [UInt8], _ record: Record, _ durability: ProviderStoreDurability) throws {
        try store.store.put(record, at: ProviderStoreKey(key), in: namespace, durability: durability)
        records.withLock { $0[key] = record }
    }

    /// Stores a record. When that fails, the user is told, and the record lives as long as the process.
    package func set(_ key: [UInt8], _ record: Record) {
        records.withLock { records in
            records[key] = record
            store.attempt { try $0.put(record, at: ProviderStoreKey(key), in: namespace) }
        }
    }

    /// Stores records, and removes those that are nil, in one transaction. When that fails, the user is told, and the records in
    /// memory are the new ones.
    package func apply(_ changes: [(name: [UInt8], record: Record?)]) {
        if changes.isEmpty { return }
        records.withLock { records in
            for (name, record) in changes { records[name] = record }
            store.apply(changes.map { (ProviderStoreKey($0.name), $0.record) }, in: namespace)
        }
    }

    /// Removes a record. When that fails, the user is told, and the record is back at the next start.
    package func remove(_ key: [UInt8], _ durability: ProviderStoreDurability = .committed) {
        records.withLock { records in
            guard records.removeValue(forKey: key) != nil else { return }
            store.attempt { try $0.remove(ProviderStoreKey(key), in: namespace, durability: durability) }
        }
    }
}
