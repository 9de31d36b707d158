import FileProvider
import FileProviderTesting
import Foundation
import Replica
import SystemPackage
import Testing

/// What is at a path, on either side.
struct TreeEntry: Hashable, CustomStringConvertible {
    var isDirectory: Bool
    var content: String?
    var size: Int64?
    var modifiedAt: FileTimestamp?
    var permissions: UInt16?

    var description: String {
        let mode = permissions.map { String($0, radix: 8) } ?? "-"
        return isDirectory
            ? "directory \(mode) \(modifiedAt?.nanosecondsSince1970 ?? 0)"
            : "'\(content ?? "")' \(mode) \(modifiedAt?.nanosecondsSince1970 ?? 0)"
    }
}

extension RemoteTree {
    /// Everything that is there, by paths.
    func entries(in directory: ItemIdentifier = .rootContainer, at prefix: String = "") -> [String: TreeEntry] {
        var entries: [String: TreeEntry] = [:]
        for item in items(in: directory) {
            let path = prefix + item.filename
            let isDirectory = item.kind == .directory
            let content = content(of: item.itemIdentifier).map { String(decoding: $0[0..<$0.size], as: UTF8.self) }
            var name = path
            while entries[name] != nil { name += " again" }
            entries[name] = TreeEntry(
                isDirectory: isDirectory, content: isDirectory ? nil : content,
                size: isDirectory ? nil : item.documentSize, modifiedAt: item.contentModificationDate,
                permissions: item.permissions)
            if isDirectory { entries.merge(self.entries(in: item.itemIdentifier, at: path + "/")) { one, _ in one } }
        }
        return entries
    }
}

extension Machine {
    /// Everything that the mount shows, by paths.
    func entries(in directory: InodeNumber = .root, at prefix: String = "") async throws -> [String: TreeEntry] {
        var entries: [String: TreeEntry] = [:]
        for name in try await names(in: directory) {
            guard let inode = try replica.database.lookup(name, in: directory).inode else { continue }
            let isDirectory = inode.kind == .directory
            entries[prefix + name] = TreeEntry(
                isDirectory: isDirectory, content: isDirectory ? nil : try await read(inode.number),
                size: isDirectory ? nil : inode.size, modifiedAt: inode.modifiedAt, permissions: inode.permissions)
            if isDirectory {
                entries.merge(try await self.entries(in: inode.number, at: "\(prefix)\(name)/")) { one, _ in one }
            }
        }
        return entries
    }

    /// Drains the machine, and fails the test unless it is settled after it.
    func settle(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await drain()
        try await expectSettled(sourceLocation: sourceLocation)
    }

    /// Fails the test unless both sides are the same and nothing is left to do.
    func expectSettled(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let complaints = try await complaints()
        #expect(complaints == [], sourceLocation: sourceLocation)
    }

    /// Looks whether both sides are the same and nothing is left to do; says in words what is not so.
    func complaints(held: ItemFields = []) async throws -> [String] {
        var complaints: [String] = []
        let (remote, local) = (provider.tree.entries(), try await entries())
        for path in Set(remote.keys).union(local.keys).sorted() {
            let (there, here) = (remote[path], local[path])
            if there != here {
                complaints.append(
                    "\(path): here \(here.map(String.init(describing:)) ?? "nothing"), "
                        + "there \(there.map(String.init(describing:)) ?? "nothing")")
            }
        }
        complaints += try replica.database.defects()
        let pending = try replica.database.pendingCounts()
        if pending.items > 0 { complaints.append("\(pending.items) items are pending") }
        let failures = try replica.database.failureCount()
        if failures > 0 { complaints.append("\(failures) failures are left") }
        for path in local.keys {
            if let failure = try await replica.database.failure(of: number(path)) {
                complaints.append("\(path) failed: \(failure.code) \(failure.message)")
            }
        }
        let known = try FileManager.default.contentsOfDirectory(
            atPath: replica.directory.appending("contents").string)
        for name in known {
            guard let number = Int64(name), try replica.database.item(ofInode: InodeNumber(rawValue: number)) != nil
            else {
                complaints.append("content file \(name) belongs to no inode")
                continue
            }
        }
        let made = provider.tree.applied.filter { $0.kind == .create }
        // An item that another client deleted before its acknowledgement may be created again.
        let there = made.filter { provider.tree[$0.identifier] != nil }
        for (sent, changes) in Dictionary(grouping: there, by: \.sentIdentifier) where changes.count > 1 {
            complaints.append("\(sent) was made \(changes.count) times")
        }
        let contents = remote.values.compactMap(\.content).filter { !$0.isEmpty }
        for (content, same) in Dictionary(grouping: contents, by: \.self) where same.count > 1 {
            complaints.append("'\(content)' is there \(same.count) times")
        }
        return complaints
    }
}
