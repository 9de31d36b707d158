import Foundation
import GRDB
import Synchronization

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

    /// What is stored as JSON under a key of the domain; nil for nothing, and for what another version has stored.
    package func value<Value: Decodable>(of key: DomainKey, as type: Value.Type) throws -> Value? {
        guard let bytes = try bytes(of: key) else { return nil }
        return try? JSONDecoder().decode(type, from: Data(bytes))
    }

    /// Stores a value as JSON.
    package func set(_ key: DomainKey, toJSONOf value: some Encodable) throws {
        try set(key, to: [UInt8](JSONEncoder().encode(value)))
    }

    /// Makes a part of the schema that is made when it is first needed (`Schema.partsOnDemand`), unless it is there.
    func make(_ key: DomainKey) throws {
        guard try value(of: key) == nil else { return }
        try write { db in
            guard try key.bytes(in: db) == nil else { return }
            try key.set("1", in: db)
            for part in Schema.partsOnDemand where part.key == key { try db.execute(sql: part.sql) }
        }
    }

    /// Makes the index of content versions, unless it is there.
    ///
    /// - Returns: false where it cannot be made, on a full disk for example: then it is tried again after a minute.
    func indexVersions() -> Bool {
        if let time = nextIndexOfVersions.withLock({ $0 }), ContinuousClock.now < time { return false }
        do {
            try make(.versionsAreIndexed)
            return true
        } catch {
            nextIndexOfVersions.withLock { $0 = ContinuousClock.now + .seconds(60) }
            return false
        }
    }
}
