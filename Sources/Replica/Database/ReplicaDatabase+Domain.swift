import GRDB

extension ReplicaDatabase {
    package func value(of key: DomainKey) throws -> String? {
        try read { db in try key.string(in: db) }
    }

    package func bytes(of key: DomainKey) throws -> [UInt8]? {
        try read { db in try key.bytes(in: db) }
    }

    /// Stores a text under a key of the domain; nil removes it.
    package func set(_ key: DomainKey, to value: String?) throws {
        try write { db in try key.set(value, in: db) }
    }

    package func set(_ key: DomainKey, to bytes: [UInt8]?) throws {
        try write { db in try key.set(bytes: bytes, in: db) }
    }
}
