import Foundation
import SystemPackage

/// A provider's own records: a transactional key-value store that is removed with the domain.
///
/// Records are `Codable` values under byte keys, in namespaces that do not see each other:
///
///     let moves = ProviderStoreNamespace<Move>("moves")
///     try manager.store.put(move, at: "a/b", in: moves, durability: .synced)
///     let unfinished = try manager.store.list(in: moves)
///
/// A committed write survives the death of the process; with ``ProviderStoreDurability/synced`` it also survives a power
/// failure. All calls block for as long as the disk takes, may come from any thread, and must not be made from the body of
/// another call. Every failure is thrown.
public protocol ProviderStore: Sendable {
    /// Runs a body that reads one state of the store.
    ///
    /// - Throws: what the body throws; `posix` when the store cannot be read; `domainDisabled` after the domain was closed.
    func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value

    /// Runs a body in a transaction. When the body throws, the store is as it was before.
    ///
    /// Transactions of one store run one after another. On a full disk the body may run twice: it should change nothing but
    /// the store.
    ///
    /// - Throws: what the body throws; `posix` with ENOSPC when the disk is full, with EIO when the store is damaged;
    ///   `domainDisabled` after the domain was closed.
    func write<Value>(
        _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
    ) throws -> Value
}

/// What a committed transaction survives.
public enum ProviderStoreDurability: Sendable {
    /// The death of the process, but not of the machine.
    case committed
    /// A power failure, too: the disk has confirmed the transaction and all before it when the call returns.
    case synced
}

/// The key of a record. Keys are compared and ordered byte by byte.
public struct ProviderStoreKey: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The key itself.
    public var bytes: [UInt8]

    /// A key of these bytes.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The UTF-8 bytes of a text.
    public init(_ text: String) {
        bytes = Array(text.utf8)
    }

    public init(stringLiteral text: String) {
        self.init(text)
    }

    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// The name of a group of records of one type.
public struct ProviderStoreNamespace<Record: Codable>: Sendable {
    /// The name, unique in the domain's store.
    public let name: String

    /// A namespace with this name.
    public init(_ name: String) {
        self.name = name
    }
}

/// One state of a store, valid within the body that got it. The requirements are for implementations; providers use the
/// typed calls.
public protocol ProviderStoreSnapshot {
    /// The encoded record at a key; nil when there is none.
    ///
    /// - Throws: `posix` when the store cannot be read.
    func encodedRecord(at key: ProviderStoreKey, in namespace: String) throws -> [UInt8]?

    /// Calls a closure with each key that begins with a prefix, and its encoded record, in the order of the keys.
    ///
    /// - Throws: the error of the closure; `posix` when the store cannot be read.
    func visitEncodedRecords(
        in namespace: String, prefix: ProviderStoreKey, _ visit: (ProviderStoreKey, [UInt8]) throws -> Void) throws
}

/// A transaction on a store, valid within the body that got it.
public protocol ProviderStoreTransaction: ProviderStoreSnapshot {
    /// Stores an encoded record, which is JSON, at a key; nil removes the record.
    ///
    /// - Throws: `posix` when the store cannot be written.
    func setEncodedRecord(_ record: [UInt8]?, at key: ProviderStoreKey, in namespace: String) throws
}

extension ProviderStoreSnapshot {
    /// The record at a key; nil when there is none.
    ///
    /// - Throws: `posix` with EIO when the record cannot be decoded.
    public func get<Record>(_ key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>) throws -> Record? {
        try encodedRecord(at: key, in: namespace.name).map { try Self.decode($0, key, namespace) }
    }

    /// The records whose keys begin with a prefix, in the order of their keys.
    ///
    /// - Parameters:
    ///   - namespace: the namespace of the records.
    ///   - prefix: the first bytes of the keys; all records by default.
    ///   - onUnreadable: called with the error of each record that cannot be decoded, which is then left out; it stays in
    ///     the store. Without it the first such error is thrown.
    /// - Throws: `posix` with EIO when a record cannot be decoded; the errors of the store.
    public func list<Record>(
        in namespace: ProviderStoreNamespace<Record>, prefix: ProviderStoreKey = "",
        onUnreadable: ((any Error) -> Void)? = nil
    ) throws -> [(key: ProviderStoreKey, record: Record)] {
        var records: [(key: ProviderStoreKey, record: Record)] = []
        try visitEncodedRecords(in: namespace.name, prefix: prefix) { key, bytes in
            do {
                records.append((key, try Self.decode(bytes, key, namespace)))
            } catch {
                guard let onUnreadable else { throw error }
                onUnreadable(error)
            }
        }
        return records
    }

    private static func decode<Record>(
        _ bytes: [UInt8], _ key: ProviderStoreKey, _ namespace: ProviderStoreNamespace<Record>
    ) throws -> Record {
        do {
            return try JSONDecoder().decode(Record.self, from: Data(bytes))
        } catch {
            throw FileProviderError.posix(
                .ioError, "the record '\(key)' of '\(namespace.name)' in the provider's store cannot be read: \(error)")
        }
    }
}

extension ProviderStoreTransaction {
    /// Stores a record at a key, in place of an existing one.
    ///
    /// - Throws: the errors of the encoder and of the store.
    public func put<Record>(
        _ record: Record, at key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>
    ) throws {
        try setEncodedRecord([UInt8](JSONEncoder().encode(record)), at: key, in: namespace.name)
    }

    /// Removes the record at a key, if there is one.
    ///
    /// - Throws: the errors of the store.
    public func remove<Record>(_ key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>) throws {
        try setEncodedRecord(nil, at: key, in: namespace.name)
    }
}

/// Transactions of a single call.
extension ProviderStore {
    /// The record at a key; nil when there is none.
    ///
    /// - Throws: as ``read(_:)``; `posix` with EIO when the record cannot be decoded.
    public func get<Record>(_ key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>) throws -> Record? {
        try read { try $0.get(key, in: namespace) }
    }

    /// The records whose keys begin with a prefix, in the order of their keys; see
    /// ``ProviderStoreSnapshot/list(in:prefix:onUnreadable:)``.
    ///
    /// - Throws: as ``read(_:)``; `posix` with EIO when a record cannot be decoded.
    public func list<Record>(
        in namespace: ProviderStoreNamespace<Record>, prefix: ProviderStoreKey = "",
        onUnreadable: ((any Error) -> Void)? = nil
    ) throws -> [(key: ProviderStoreKey, record: Record)] {
        try read { try $0.list(in: namespace, prefix: prefix, onUnreadable: onUnreadable) }
    }

    /// Stores a record at a key, in place of an existing one.
    ///
    /// - Throws: the errors of the encoder; as ``write(_:_:)``.
    public func put<Record>(
        _ record: Record, at key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>,
        durability: ProviderStoreDurability = .committed
    ) throws {
        try write(durability) { try $0.put(record, at: key, in: namespace) }
    }

    /// Removes the record at a key, if there is one.
    ///
    /// - Throws: as ``write(_:_:)``.
    public func remove<Record>(
        _ key: ProviderStoreKey, in namespace: ProviderStoreNamespace<Record>,
        durability: ProviderStoreDurability = .committed
    ) throws {
        try write(durability) { try $0.remove(key, in: namespace) }
    }
}
