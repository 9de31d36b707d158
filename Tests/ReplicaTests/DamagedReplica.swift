import FileProvider
import Foundation
import Logging
import ReplicaTestSupport
import Syscalls
import SystemPackage
import TestSupport

@testable import Replica

/// A replica with synced, edited, new, trashed and hard-linked files, and what only this machine has of it. The folder is
/// damaged by the test, and goes with it.
struct DamagedReplica {
    /// The domain's folder, which is not open.
    let directory: FilePath
    /// The texts that the remote does not have.
    let unsent: Set<String>
    /// The numbers of the files that contain them.
    let unsentNumbers: Set<InodeNumber>
    private let scratch: TemporaryDirectory

    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private static let caller = LocalCaller(user: 0, group: 0)

    /// - Parameters:
    ///   - isClosed: whether it was closed in order; else it is as a crash leaves it.
    ///   - bootIdentifier: of the boot during which it was used last; nil for this one.
    init(isClosed: Bool, bootIdentifier: String? = nil) async throws {
        scratch = try TemporaryDirectory()
        directory = scratch["domain"]
        let open = NothingOpen()
        let original = scratch["original"]
        let replica = try Replica(at: original, readers: 2, logger: Self.logger)
        try replica.database.set(.source, to: "memory:remote")
        try replica.database.set(.hasTrash, to: "1")
        try DomainSidecar(source: "memory:remote", mountpoint: nil, options: nil).write(in: original)
        var files: [FileProviderItem] = (0..<12).map { .file("file\($0)", size: Int64(40 + $0)) }
        for index in files.indices { files[index].capabilities.insert(.allowsTrashing) }
        try await replica.list(files + [.directory("d"), .directory("e")], open: open)
        let directory = try Self.number("d", in: replica)
        try await replica.list(
            (0..<6).map { .file("below\($0)", in: "d", size: 30) } + [.directory("inner", in: "d")],
            in: directory, open: open)
        try await replica.list([], in: Self.number("inner", in: replica), open: open)
        for name in ["file0", "file1", "file2", "below0"] { try await replica.fill(Self.number(name, in: replica)) }

        var texts: [InodeNumber: String] = [:]
        func write(to number: InodeNumber, _ replica: Replica) throws {
            let text = "unsent \(number) \(UUID().uuidString)"
            _ = try replica.change(open: open) {
                try $0.contents.beginWriting(number, truncating: true, caller: Self.caller)
            }
            let content = try replica.openContentForWriting(of: number)
            try content.writeAll(Array(text.utf8).span.bytes, at: 0)
            try content.close()
            _ = try replica.change(open: open) { try $0.contents.endWriting(number) }
            texts[number] = text
        }
        // Edited files, one of them with a second name, two of them in the trash.
        for name in ["file3", "file4", "file5", "file6", "below1", "below2"] {
            try write(to: Self.number(name, in: replica), replica)
        }
        let linked = try Self.number("file4", in: replica)
        _ = try replica.change(open: open) { try $0.names.link(linked, as: "link", in: directory) }
        for name in ["file5", "file6"] {
            _ = try replica.change(open: open) { try $0.items.trash(ItemIdentifier(name), user: 0, group: 0) }
        }
        // New files, in directories of both kinds, and files that are only in the log of new files.
        let (new, _) = try replica.change(open: open) {
            try $0.names.create(
                "new", in: .root, NewInode(kind: .directory, permissions: 0o755), caller: Self.caller, usualGroup: 0)
        }
        for (name, parent) in [("n0", InodeNumber.root), ("n1", directory), ("n2", new.number)] {
            let (made, _) = try replica.change(open: open) {
                try $0.names.createFile(name, in: parent, permissions: 0o644, caller: Self.caller, usualGroup: 0)
            }
            try made.content.close()
            try write(to: made.inode.number, replica)
        }
        for name in ["ahead0", "ahead1"] {
            guard
                let made = replica.createAhead(
                    name, in: .root, permissions: 0o644, caller: Self.caller, usualGroup: 0)
            else { continue }
            let text = "unsent \(name) \(UUID().uuidString)"
            try made.content.writeAll(Array(text.utf8).span.bytes, at: 0)
            try made.content.close()
            texts[made.inode.number] = text
        }
        unsent = Set(texts.values)
        unsentNumbers = Set(texts.keys)
        if let bootIdentifier { try replica.database.set(.bootIdentifier, to: bootIdentifier) }
        if isClosed { try replica.close() }
        try DiskImage.copy(original, to: self.directory)
        // What the first one does as it goes must not reach the copy.
        if !isClosed { try replica.close() }
    }

    private static func number(_ identifier: String, in replica: Replica) throws -> InodeNumber {
        guard let number = try replica.number(identifier) else { throw Missing(name: identifier) }
        return number
    }

    struct Missing: Error { var name: String }

    /// Removes the folder.
    func remove() { scratch.remove() }

    var database: FilePath { directory.appending(ReplicaDatabase.fileName) }

    // MARK: - What the daemon does

    /// Opens, checks and repairs the replica as `yonder check --repair` and a mount do, until nothing is wrong.
    ///
    /// - Returns: what was found.
    func repair() throws -> [CheckFinding] {
        var findings: [CheckFinding] = []
        do {
            findings += try ReplicaInspection.findings(in: directory)
        } catch is ReplicaDamage {
            findings += try rebuild()
        }
        var replica: Replica
        do {
            replica = try Replica(at: directory, readers: 2, logger: Self.logger)
        } catch is ReplicaDamage {
            findings += try rebuild()
            replica = try Replica(at: directory, readers: 2, logger: Self.logger)
        }
        do {
            findings += try replica.check(open: NothingOpen(), isRepairing: true).findings
        } catch is ReplicaDamage {
            try? replica.close()
            findings += try rebuild()
            replica = try Replica(at: directory, readers: 2, logger: Self.logger)
            findings += try replica.check(open: NothingOpen(), isRepairing: true).findings
        }
        try replica.close()
        return findings
    }

    private func rebuild() throws -> [CheckFinding] {
        do {
            return try ReplicaRebuild.run(in: directory, logger: Self.logger)
        } catch is ReplicaDamage {
            // Database and sidecar are damaged: the domain is removed, and what is here is kept.
            return try ReplicaRebuild.run(in: directory, isForRemoval: true, logger: Self.logger)
        }
    }

    /// What can be read of the replica: files of the tree with all of their content, and files in `recovered`.
    func reachableTexts() throws -> (texts: Set<String>, remarks: [CheckFinding]) {
        let replica = try Replica(at: directory, readers: 2, logger: Self.logger)
        defer { try? replica.close() }
        var texts: Set<String> = []
        var waiting: [InodeNumber] = [.root]
        var seen: Set<InodeNumber> = [.root]
        while let parent = waiting.popLast() {
            for entry in try replica.database.entries(of: parent, after: 0, limit: 10_000) {
                guard seen.insert(entry.inode.number).inserted else { continue }
                if entry.inode.kind == .directory { waiting.append(entry.inode.number) }
                guard entry.inode.kind == .file, entry.inode.content == .materialized else { continue }
                let path = directory.appending("contents").appending(entry.inode.number.description)
                if let data = FileManager.default.contents(atPath: path.string) {
                    texts.insert(String(decoding: data.prefix(Int(clamping: entry.inode.size)), as: UTF8.self))
                }
            }
        }
        let recovered = directory.appending("recovered").string
        for name in FileManager.default.enumerator(atPath: recovered)?.compactMap({ $0 as? String }) ?? [] {
            guard let data = FileManager.default.contents(atPath: "\(recovered)/\(name)") else { continue }
            texts.insert(String(decoding: data, as: UTF8.self))
        }
        return (texts, try replica.check(open: NothingOpen(), isRepairing: false).findings)
    }
}
