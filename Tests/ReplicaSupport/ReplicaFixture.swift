import FileProvider
import Foundation
import Logging
import Replica
import Synchronization
import Syscalls
import SystemPackage
import TestSupport

/// A replica in a folder of its own, which goes with it.
package final class ReplicaFixture: Sendable {
    package let directory: FilePath
    package let open = OpenSet()

    package init() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("replica-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        directory = FilePath(path)
    }

    /// A fixture with its replica.
    package static func opened() throws -> (fixture: ReplicaFixture, replica: Replica) {
        let fixture = try ReplicaFixture()
        return (fixture, try fixture.replica())
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory.string)
    }

    package func replica() throws -> Replica {
        try Replica(at: directory, readers: 4, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Runs statements on the database as no code of the replica's does.
    package func sabotage(_ sql: String) async throws {
        let script = "import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.executescript(sys.argv[2]); d.commit()"
        let path = directory.appending("replica.sqlite").string
        let outcome = try await Command.python(script, path, sql)
        guard outcome.status == 0 else { throw SabotageFailed(errors: outcome.errors) }
    }

    package struct SabotageFailed: Error {
        package var errors: String
    }

    package var contentFiles: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.appending("contents").string).sorted()) ?? []
    }

    package var recoveredFiles: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.appending("recovered").string).sorted()) ?? []
    }
}

/// Inodes that a test says are open.
package final class OpenSet: OpenInodes {
    private let numbers = Mutex<Set<InodeNumber>>([])

    package init() {}

    package func isOpen(_ number: InodeNumber) -> Bool { numbers.withLock { $0.contains(number) } }
    package func insert(_ number: InodeNumber) { numbers.withLock { _ = $0.insert(number) } }
    package func remove(_ number: InodeNumber) { numbers.withLock { _ = $0.remove(number) } }
}

extension FileProviderItem {
    package static func file(
        _ name: String, id: String? = nil, in parent: ItemIdentifier = .rootContainer, size: Int64 = 100,
        version: String = "1"
    ) -> FileProviderItem {
        FileProviderItem(
            itemIdentifier: ItemIdentifier(id ?? name), parentItemIdentifier: parent, filename: name, kind: .file,
            itemVersion: ItemVersion(contentVersion: version, metadataVersion: version), documentSize: size,
            contentModificationDate: FileTimestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789))
    }

    package static func directory(
        _ name: String, id: String? = nil, in parent: ItemIdentifier = .rootContainer
    ) -> FileProviderItem {
        FileProviderItem(
            itemIdentifier: ItemIdentifier(id ?? name), parentItemIdentifier: parent, filename: name, kind: .directory,
            itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"))
    }
}

extension Replica {
    /// Lists a directory with these items, as one page.
    @discardableResult
    package func list(
        _ items: [FileProviderItem], in directory: InodeNumber = .root, open: any OpenInodes
    ) async throws -> ReplicaEffects {
        guard let beginning = try await beginListing(of: directory) else { return ReplicaEffects() }
        var (_, effects) = try await ingest(open: open) { ingestion in
            try ingestion.listings.page(
                of: directory, listing: beginning.number, items: items, observed: beginning.observation)
        }
        let gone = try await unconfirmed(in: directory, listing: beginning.number)
        effects.append(
            try await ingest(open: open) { ingestion in try ingestion.listings.finishListing(of: directory, gone: gone)
            }.1)
        return effects
    }

    /// Lists a directory with these items.
    ///
    /// - Returns: the inode of the first.
    package func list(
        _ first: FileProviderItem, _ others: FileProviderItem..., in directory: InodeNumber = .root,
        open: any OpenInodes
    ) async throws -> InodeNumber {
        try await list([first] + others, in: directory, open: open)
        guard let number = try self.number(first.itemIdentifier.rawValue) else { throw FileProviderError(.noSuchItem) }
        return number
    }

    @discardableResult
    package func change(
        _ updated: [FileProviderItem] = [], deleted: [ItemIdentifier] = [], open: any OpenInodes
    ) async throws -> ReplicaEffects {
        try await ingest(open: open) { ingestion in
            try ingestion.changes.apply(ChangeBatch(updated: updated, deleted: deleted, anchor: SyncAnchor("x")))
        }.1
    }

    package func names(in directory: InodeNumber = .root) throws -> [String] {
        try database.entries(of: directory, after: 0, limit: 1000).map(\.name).sorted()
    }

    package func number(_ identifier: String) throws -> InodeNumber? {
        try database.item(ItemIdentifier(identifier))?.inode.number
    }

    /// Fills a file with as many bytes as it says it has.
    ///
    /// - Parameter range: nil for all of it.
    package func fill(_ number: InodeNumber, _ range: Range<Int64>? = nil) async throws {
        let beginning = try await beginContent(of: number, version: nil)
        defer { try? beginning.descriptor.close() }
        let range = range ?? 0..<beginning.size
        try beginning.descriptor.writeAll(
            [UInt8](repeating: 7, count: range.count).span.bytes, at: range.lowerBound)
        _ = try await recordContent(of: number, generation: beginning.generation, ranges: ByteRanges([range]))
    }
}
