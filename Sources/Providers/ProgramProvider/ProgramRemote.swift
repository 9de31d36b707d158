import FileProvider
import Foundation
import PathAddressing
import Synchronization
import SystemPackage

/// The items that a program serves.
final class ProgramRemote: PathRemote {
    private let host: ProgramHost
    private let files: TransferFiles
    private let features: @Sendable () -> ProgramFeatures
    private let report: @Sendable (String) -> Void
    /// The bytes of one `read`, so that content arrives as it is read and a cancelled reader costs little.
    private static let piece: Int64 = 8 << 20
    /// How long a call waits because of `retryAfter`, in seconds, and how often.
    private static let longestWait = 30.0
    private static let attempts = 3

    init(
        host: ProgramHost, files: TransferFiles, features: @escaping @Sendable () -> ProgramFeatures,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.host = host
        self.files = files
        self.features = features
        self.report = report
    }

    var traits: RemoteTraits { features().traits }

    func close() async { await host.close() }

    // MARK: - Reading

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        let result: EntryResult = try await asking("stat", PathParameters(path: path.text))
        return try result.entry.entry(name: path.name ?? "", features())
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        let page = token.map { String(decoding: $0, as: UTF8.self) }
        let result: ListResult = try await asking(
            "list", ListParameters(path: path.text, page: page, limit: limit))
        let features = features()
        var listing = RemoteListing(
            entries: try result.entries.filter(\.hasValidName).map { try $0.entry(features) },
            next: result.next.map { Array($0.utf8) })
        if listing.entries.count < result.entries.count {
            listing.leavesOut = true
            report("'/\(path.text)' has items whose names Linux does not allow; they are not shown")
        }
        return listing
    }

    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        throw FileProviderError(.featureUnsupported, "the protocol has no trees")
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        if let range, range.isEmpty { return try await entry(at: path) }
        let isWhole = features().ranges != true
        var offset = isWhole ? 0 : range?.lowerBound ?? 0
        var wanted = tag
        while true {
            let length = isWhole ? nil : min(Self.piece, (range?.upperBound ?? .max) - offset)
            let (start, expected) = (offset, wanted)
            let (entry, end) = try await files.with { [self] into, file in
                let result: EntryResult = try await asking(
                    "read",
                    ReadParameters(
                        path: path.text, tag: expected.flatMap(ProgramTag.text), offset: start, length: length,
                        into: into))
                let entry = try result.entry.entry(name: path.name ?? "", features())
                guard entry.kind == .file, let size = entry.size else {
                    throw FileProviderError(
                        .malformedResponse, "'\(path.text)' is no file, and the program has read it")
                }
                guard entry.tag == expected ?? entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
                let end = max(start, min(size, length.map { start + $0 } ?? size))
                try await files.blocking {
                    let written = try file.seek(offset: 0, from: .end)
                    guard written == (end > start ? end : 0) else {
                        throw FileProviderError(
                            .malformedResponse,
                            "the program wrote '\(path.text)' up to byte \(written), and it must be \(end)")
                    }
                    if end > start { try sink.write(from: file, at: start, count: end - start) }
                }
                return (entry, end)
            }
            let last = min(entry.size ?? 0, range?.upperBound ?? .max)
            if end >= last { return entry }
            (offset, wanted) = (end, entry.tag)
        }
    }

    func quota() async throws -> RemoteQuota? {
        guard features().quota == true else { return nil }
        let result: QuotaResult = try await asking("quota", NoParameters())
        return RemoteQuota(free: max(0, result.free), total: result.total)
    }

    // MARK: - Changing

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        // The program gets a copy of one generation, so that it need not confirm anything.
        try await files.withCopy(of: contents) { [self] from in
            var change = ChangeParameters(path: path)
            (change.from, change.size) = (from, contents.size)
            change.take(attributes)
            let entry = try await changing("write", change, path, if: condition)
            guard entry.kind == .file, entry.size == contents.size else {
                throw FileProviderError(
                    .malformedResponse,
                    "the program has written '\(path.text)' with \(entry.size ?? 0) bytes instead of \(contents.size)")
            }
            return entry
        }
    }

    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        var change = ChangeParameters(path: path)
        change.take(attributes)
        return try await changing("makeDirectory", change, path, if: .absent)
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        guard features().symbolicLinks == true else {
            throw FileProviderError(.featureUnsupported, "the program has no symbolic links")
        }
        var change = ChangeParameters(path: path)
        change.take(attributes)
        change.target = target
        return try await changing("makeLink", change, path, if: .absent)
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        var change = ChangeParameters(path: path)
        change.to = newPath.text
        change.kind = Self.name(of: kind)
        return try await changing("move", change, newPath, if: .absent)
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        let features = features()
        var notStored: ItemFields = []
        var change = ChangeParameters(path: path)
        change.take(attributes)
        if features.modified != true, change.modified != nil {
            (change.modified, notStored) = (nil, notStored.union(.contentModificationDate))
        }
        if features.permissions != true, change.permissions != nil {
            (change.permissions, notStored) = (nil, notStored.union(.permissions))
        }
        if attributes.extendedAttributes != nil { notStored.insert(.extendedAttributes) }
        guard change.modified != nil || change.permissions != nil else {
            return (try await entry(at: path), notStored)
        }
        let result: EntryResult = try await calling("setAttributes", change)
        for name in result.notStored ?? [] {
            if name == "modified" { notStored.insert(.contentModificationDate) }
            if name == "permissions" { notStored.insert(.permissions) }
        }
        return (try result.entry.entry(name: path.name ?? "", features), notStored)
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        var change = ChangeParameters(path: path)
        change.kind = Self.name(of: kind)
        do {
            if try await !holds(condition, at: path, passingTo: &change) { return }
            let _: NoResult = try await calling("delete", change)
        } catch let failure as ProgramFailure where failure.isCondition {
            throw try await conditionFailure(failure, at: path)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
    }

    // MARK: - Calls

    /// Makes a change, and looks before it where the program does not check conditions.
    private func changing(
        _ method: String, _ change: ChangeParameters, _ path: RemotePath, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        var change = change
        _ = try await holds(condition, at: path, passingTo: &change)
        do {
            let result: EntryResult = try await calling(method, change)
            return try result.entry.entry(name: path.name ?? "", features())
        } catch let failure as ProgramFailure where failure.isCondition {
            throw try await conditionFailure(failure, at: path)
        }
    }

    /// Passes a condition to the program, or compares it here where the program cannot.
    ///
    /// - Returns: false if there is no item.
    /// - Throws: ``RemoteConditionFailure``.
    private func holds(
        _ condition: RemoteCondition, at path: RemotePath, passingTo change: inout ChangeParameters
    ) async throws -> Bool {
        switch condition {
        case .always: return true
        case .absent: change.ifAbsent = true
        case .unchanged(let tag): change.ifTag = ProgramTag.text(tag)
        case .empty: change.ifEmpty = true
        }
        if features().conditions == true, change.ifAbsent != nil || change.ifTag != nil || change.ifEmpty != nil {
            return true
        }
        let present: RemoteEntry?
        do {
            present = try await entry(at: path)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            present = nil
        }
        switch condition {
        case .absent: if present != nil { throw RemoteConditionFailure(present: present) }
        case .unchanged(let tag):
            guard let present else {
                if change.from == nil { return false }
                throw RemoteConditionFailure(present: nil)
            }
            if present.tag != tag { throw RemoteConditionFailure(present: present) }
        case .empty:
            guard present != nil else { return false }
            try await visitListing(of: path) { part in
                guard !part.leavesOut, part.entries.allSatisfy({ HiddenName.isOne($0.name) }) else {
                    throw RemoteConditionFailure(present: present)
                }
                return true
            }
        case .always: break
        }
        return present != nil
    }

    private func conditionFailure(_ failure: ProgramFailure, at path: RemotePath) async throws -> RemoteConditionFailure
    {
        if let entry = failure.data?.entry {
            return RemoteConditionFailure(present: try entry.entry(name: path.name ?? "", features()))
        }
        do {
            return RemoteConditionFailure(present: try await entry(at: path))
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return RemoteConditionFailure(present: nil)
        }
    }

    /// Makes a call that changes nothing, again if the program ended during it.
    private func asking<Value: Decodable & Sendable>(
        _ method: String, _ parameters: some Encodable & Sendable
    ) async throws -> Value {
        do {
            return try await calling(method, parameters)
        } catch let error as FileProviderError where error.code == .providerDomainTemporarilyUnavailable {
            return try await calling(method, parameters)
        } catch let failure as ProgramFailure {
            throw failure.error()
        }
    }

    /// Makes a call, and again after the time that the program asks for.
    ///
    /// - Throws: ``ProgramFailure`` for a condition that did not hold; `FileProviderError`.
    private func calling<Value: Decodable & Sendable>(
        _ method: String, _ parameters: some Encodable & Sendable
    ) async throws -> Value {
        var attempt = 1
        while true {
            let session = try await host.running()
            do {
                return try await session.call(method, parameters)
            } catch let failure as ProgramFailure {
                if failure.isCondition { throw failure }
                guard let wait = failure.data?.retryAfter, wait > 0, attempt < Self.attempts else {
                    throw failure.error()
                }
                attempt += 1
                try await Task.sleep(for: .seconds(min(wait, Self.longestWait)))
            }
        }
    }

    private static func name(of kind: ItemKind) -> String {
        ProgramEntry.kinds.first { $0.value == kind }?.key ?? "file"
    }
}

extension ChangeParameters {
    fileprivate mutating func take(_ attributes: RemoteAttributes) {
        modified = attributes.contentModificationDate?.seconds1970
        permissions = attributes.permissions
    }
}
