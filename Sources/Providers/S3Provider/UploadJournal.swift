import Foundation
import HTTPTransport
import Synchronization
import SystemPackage

/// An upload in parts that was begun and has not ended.
struct UploadRecord: Codable, Hashable, Sendable {
    var key: String
    var identifier: String
    var size: Int64
    var partSize: Int64
    /// What is written beside the content: it was said at the beginning.
    var metadata: [String: String]
    /// Seconds since 1970.
    var begun: Int64

    static func metadata(_ fields: HTTPFields) -> [String: String] {
        Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
    }
}

/// The uploads under way, a file each in the provider's folder.
final class UploadJournal: Sendable {
    private let files: JournalFiles<UploadRecord>

    init(directory: FilePath) {
        files = JournalFiles(directory: directory.appending("uploads"))
    }

    /// A record whose numbers make no sense was damaged, and is not gone on with.
    var records: [UploadRecord] { files.records.filter { $0.size > 0 && $0.partSize > 0 && $0.begun >= 0 } }

    func record(for key: String) -> UploadRecord? {
        records.first { $0.key.utf8.elementsEqual(key.utf8) }
    }

    func add(_ record: UploadRecord) throws { try files.write(record, as: Self.name(record)) }

    func remove(_ record: UploadRecord) { files.remove(Self.name(record)) }

    private static func name(_ record: UploadRecord) -> String {
        String(Signature.hash(Array("\(record.key)\0\(record.identifier)".utf8)).prefix(32))
    }
}

/// Small records that survive a crash: one file each, written whole or not at all.
final class JournalFiles<Record: Codable & Sendable>: Sendable {
    private let directory: FilePath
    private let held: Mutex<[String: Record]>

    init(directory: FilePath) {
        self.directory = directory
        var found: [String: Record] = [:]
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []
        for name in names where name.hasSuffix(".json") {
            let url = URL(fileURLWithPath: directory.appending(name).string)
            guard let data = try? Data(contentsOf: url), let record = try? JSONDecoder().decode(Record.self, from: data)
            else { continue }
            found[String(name.dropLast(5))] = record
        }
        held = Mutex(found)
    }

    var records: [Record] { held.withLock { Array($0.values) } }

    func write(_ record: Record, as name: String) throws {
        try held.withLock { held in
            try FileManager.default.createDirectory(atPath: directory.string, withIntermediateDirectories: true)
            let path = directory.appending(name + ".json").string
            try JSONEncoder().encode(record).write(to: URL(fileURLWithPath: path + ".new"))
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path + ".new"))
            try file.synchronize()
            try file.close()
            _ = try FileManager.default.replaceItem(path + ".new", over: path)
            held[name] = record
        }
    }

    func remove(_ name: String) {
        held.withLock { held in
            held[name] = nil
            try? FileManager.default.removeItem(atPath: directory.appending(name + ".json").string)
        }
    }
}

extension FileManager {
    /// Gives a file the place of another, in one step.
    fileprivate func replaceItem(_ path: String, over other: String) throws -> Bool {
        guard rename(path, other) == 0 else { throw CocoaError(.fileWriteUnknown) }
        return true
    }
}
