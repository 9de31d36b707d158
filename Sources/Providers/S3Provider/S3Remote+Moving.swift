import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// Renaming, honestly: copies on the server, and nothing deleted before all of them are there. What is half done is not
/// shown, is known after a crash, and goes on or is taken back.
extension S3Remote {
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try await ready()
        try check(newPath)
        return try await changing(path, isTree: kind == .directory, isEmptied: true, to: newPath) {
            try await translating { try await moveClaimed(path, to: newPath, kind) }
        }
    }

    private func moveClaimed(_ path: RemotePath, to newPath: RemotePath, _ kind: ItemKind) async throws -> RemoteEntry {
        let (from, to) = (place(path, kind), place(newPath, kind))
        // Also what is half done below: hidden copies would come along, and be shown where they come to.
        try await settleMoves(over: [from, to], but: MoveRecord(from: from, to: to, stage: .copying, begun: 0))
        try await settleDoubts(over: [path, newPath].flatMap { extents(of: $0, isTree: kind == .directory) })
        guard let there = try await present(at: path), there.kind == kind else { throw Self.missing(path) }
        if let name = path.name, let newName = newPath.name { sent.carry(name, to: newName) }
        try await requireDirectory(newPath.parent)
        if let there = try await present(at: newPath) { throw RemoteConditionFailure(present: there) }
        // For the deleting.
        _ = await conditions()
        let done: Void? = try await moves.run(from: from) {
            var record =
                moves.record(from: from) ?? MoveRecord(from: from, to: to, stage: .copying, begun: S3Client.now)
            try moves.save(record)
            do {
                try await copyAll(record)
            } catch let failure as S3Failure {
                // It will not work the next time either.
                try? await deleteCopies(record)
                throw failure
            }
            try await keepDirectory(path.parent)
            record.stage = .deleting
            try moves.save(record)
            client.ledger.noteRenamed(key(of: path))
            try await deleteOriginals(record)
            moves.remove(record)
        }
        guard done != nil else { throw Self.busy(path) }
        forget(prefix(of: path))
        guard let moved = try await present(at: newPath) else { throw Self.missing(newPath) }
        return moved
    }

    /// The key of a file or a link, the prefix of a directory.
    private func place(_ path: RemotePath, _ kind: ItemKind) -> String {
        switch kind {
        case .file: key(of: path)
        case .directory: prefix(of: path)
        case .symbolicLink: key(of: path) + LinkNames.suffix
        }
    }

    // MARK: - What an earlier start left

    /// Called first by everything: ends what is certain to be ended, also when a connection broke in the midst of it.
    func ready() async throws {
        // In a domain that may change nothing there it waits for a start in which it may.
        if manager.domain.isReadOnly { return }
        for record in moves.abandonedDeletions {
            do {
                _ = try await translating { try await self.takeBack(record) }
            } catch let error as FileProviderError where error.code == .providerDomainTemporarilyUnavailable {
                // The server has no time for it: whoever comes next tries it again.
            } catch let error as FileProviderError where error.code.reaction == .giveUpAsking {
                moves.noteStuck(record)
                manager.report("what was renamed cannot be deleted from '\(record.from)': \(error.message)")
            }
        }
        if state.withLock({ $0.isReady }) { return }
        for record in moves.records where record.stage == .copying && S3Client.now - record.begun > 7 * 86_400 {
            _ = try await translating { try await self.takeBack(record) }
        }
        let isFirst = state.withLock { state in
            defer { state.isReady = true }
            return !state.isReady
        }
        if isFirst { Task { await self.abortLeftovers() } }
    }

    /// Ends what was begun and nobody carries on: of what was being copied only the originals stay, of what was being
    /// deleted only the copies.
    ///
    /// - Returns: false when somebody else is about it.
    func takeBack(_ record: MoveRecord) async throws -> Bool {
        try await moves.run(from: record.from) {
            // Somebody else may have been faster.
            guard let record = moves.record(from: record.from) else { return }
            switch record.stage {
            case .copying: try await deleteCopies(record)
            case .deleting:
                try await deleteOriginals(record)
                moves.remove(record)
            }
        } != nil
    }

    /// Deletes the copies: the originals are all there. A copy that is still being made would come to light afterwards.
    private func deleteCopies(_ record: MoveRecord) async throws {
        try await settleDoubts(over: [record.isTree ? .below(record.to) : .exactly(record.to)])
        guard record.isTree else {
            if let original = try await listed(record.from), let copy = try await listed(record.to),
                isCopy(copy, of: original)
            {
                try await delete([Deletion(key: copy.key, tag: copy.tag)])
            }
            moves.remove(record)
            return
        }
        try await join(record) { pairs in
            try await delete(
                pairs.compactMap { original, copy in
                    copy.flatMap { isCopy($0, of: original) ? Deletion(key: $0.key, tag: $0.tag) : nil }
                })
        }
        moves.remove(record)
    }

    // MARK: - Steps

    private func copyAll(_ record: MoveRecord) async throws {
        guard record.isTree else { return try await copyOne(record) }
        // Others may write meanwhile: until a look at all of it finds nothing more to copy.
        let copied = CopiedTags()
        for _ in 1...20 {
            let missing = Mutex(0)
            try await join(record) { pairs in
                let due = pairs.filter { original, copy in
                    guard let copy, copy.size == original.size else { return true }
                    return copy.tag != original.tag && copied[copy.key] != original.tag
                }
                missing.withLock { $0 += due.count }
                // What an answer says of a copy's tag is not always what is listed.
                note(
                    pairs.compactMap { original, copy in
                        guard let copy, copy.tag == original.tag || copied[copy.key] == original.tag,
                            copies.known(copy) != copies.known(original)
                        else { return nil }
                        return (original, copy.key, copy.tag)
                    })
                let made = Mutex<[(original: S3Object, key: String, tag: String)]>([])
                try await inParallel(due.map(\.original)) { original in
                    let key = record.to + original.key.dropping(record.from)
                    guard let tag = try await self.copyUnchanged(original, to: key) else { return }
                    if tag != original.tag || original.tag.contains("-") { copied[key] = original.tag }
                    made.withLock { $0.append((original, key, tag)) }
                }
                note(made.withLock { $0 })
            }
            if missing.withLock({ $0 }) == 0 { return }
        }
        throw Self.restless(record)
    }

    private func copyOne(_ record: MoveRecord) async throws {
        for _ in 1...20 {
            guard let original = try await listed(record.from) else { throw Self.vanished(record.from) }
            guard try await copyUnchanged(original, to: record.to) != nil else { continue }
            guard let copy = try await listed(record.to), copy.size == original.size else {
                throw FileProviderError(.malformedResponse, "a copy that the server made is not there")
            }
            note([(original, record.to, copy.tag)])
            // What the copy is of shows its tag; where that is another, the original has to have been the same all the time.
            if copy.tag == original.tag { return }
            if try await listed(record.from)?.tag == original.tag { return }
        }
        throw Self.restless(record)
    }

    /// - Returns: nil when the original is another one by now: then it is to be looked at once more.
    private func copyUnchanged(_ original: S3Object, to key: String) async throws -> String? {
        do {
            return try await copy(original, to: key)
        } catch let failure as S3Failure where failure.isUnmetCondition {
            return nil
        }
    }

    /// What was known of originals is known of their copies.
    private func note(_ made: [(original: S3Object, key: String, tag: String)]) {
        dates.note(made.compactMap { original, key, tag in date(of: original).map { (key, tag, $0) } })
        copies.note(made.map { original, key, tag in (key, tag, copies.known(original)) })
    }

    private static func restless(_ record: MoveRecord) -> FileProviderError {
        FileProviderError(
            .providerDomainTemporarilyUnavailable, "'\(record.from)' is written all the time: it cannot be renamed now")
    }

    /// Deletes the originals that have a copy.
    private func deleteOriginals(_ record: MoveRecord) async throws {
        guard record.isTree else {
            // Somebody else may write it at any time: it is looked at last.
            if let copy = try await listed(record.to), let original = try await listed(record.from),
                isCopy(copy, of: original)
            {
                try await delete([Deletion(key: original.key, tag: original.tag)])
            }
            return
        }
        try await join(record) { pairs in
            try await delete(
                pairs.compactMap { original, copy in
                    copy.flatMap { isCopy($0, of: original) ? Deletion(key: original.key, tag: original.tag) : nil }
                })
        }
    }

    /// Copies that the server makes of large objects, or of encrypted ones, have other tags: then what was noted when they
    /// were made counts, and their date where nothing was.
    private func isCopy(_ copy: S3Object, of original: S3Object) -> Bool {
        guard copy.size == original.size else { return false }
        if copy.tag == original.tag { return true }
        if let isNoted = copies.isCopy(copy, of: original) { return isNoted }
        guard let made = copy.modified, let written = original.modified else { return false }
        return made >= written
    }

    /// Everything below the old place, with what is in the same place below the new one, many at a time.
    private func join(
        _ record: MoveRecord, _ take: ([(original: S3Object, copy: S3Object?)]) async throws -> Void
    ) async throws {
        var originals = KeyReader(client: client, prefix: record.from)
        var copies = KeyReader(client: client, prefix: record.to)
        var batch: [(original: S3Object, copy: S3Object?)] = []
        while let original = try await originals.next() {
            let rest = original.key.utf8.dropFirst(record.from.utf8.count)
            while let copy = copies.current,
                copy.key.utf8.dropFirst(record.to.utf8.count).lexicographicallyPrecedes(rest)
            {
                try await copies.advance()
            }
            if copies.hasNotBegun {
                try await copies.advance()
                while let copy = copies.current,
                    copy.key.utf8.dropFirst(record.to.utf8.count).lexicographicallyPrecedes(rest)
                {
                    try await copies.advance()
                }
            }
            let isHere = copies.current?.key.utf8.dropFirst(record.to.utf8.count).elementsEqual(rest) == true
            batch.append((original, isHere ? copies.current : nil))
            if batch.count >= 1000 {
                try await take(batch)
                batch = []
            }
        }
        if !batch.isEmpty { try await take(batch) }
    }

    func inParallel<Element: Sendable>(
        _ elements: [Element], _ body: @escaping @Sendable (Element) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, element) in elements.enumerated() {
                if index >= settings.width { try await group.next() }
                group.addTask { try await body(element) }
            }
            try await group.waitForAll()
        }
    }

    private static func vanished(_ key: String) -> FileProviderError {
        FileProviderError(.noSuchItem, "'\(key)' is gone from the bucket")
    }
}

/// The tags of originals by the keys of their copies, where the copy got another, or may have got one.
private final class CopiedTags: Sendable {
    private let tags = Mutex<[KeyBytes: String]>([:])

    subscript(_ key: String) -> String? {
        get { tags.withLock { $0[KeyBytes(key)] } }
        set { tags.withLock { $0[KeyBytes(key)] = newValue } }
    }
}

/// All objects whose keys begin with a prefix, one after the other.
struct KeyReader {
    let client: S3Client
    let prefix: String
    private var page: [S3Object] = []
    private var index = 0
    private var token: String?
    private var check = CycleCheck<String>()
    private var isLast = false
    private(set) var hasNotBegun = true
    private(set) var current: S3Object?

    init(client: S3Client, prefix: String) {
        self.client = client
        self.prefix = prefix
    }

    mutating func next() async throws -> S3Object? {
        try await advance()
        return current
    }

    mutating func advance() async throws {
        hasNotBegun = false
        while index >= page.count {
            if isLast {
                current = nil
                return
            }
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token)
            try check.check(listing.next, of: "'\(prefix)'")
            page = listing.entries.compactMap { if case .object(let object) = $0 { object } else { nil } }
            index = 0
            token = listing.next
            isLast = listing.next == nil
        }
        current = page[index]
        index += 1
    }
}
