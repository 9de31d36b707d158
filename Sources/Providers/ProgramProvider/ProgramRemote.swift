import FileProvider
import FileProviderPaths

/// The items that a program serves.
final class ProgramRemote: ThumbnailRemote, RetryingProvider {
    let calls: ProgramCalls
    private let files: TransferFiles
    private let features: @Sendable () -> ProgramFeatures
    private let report: @Sendable (String) -> Void

    init(
        host: ProgramHost, files: TransferFiles, features: @escaping @Sendable () -> ProgramFeatures,
        report: @escaping @Sendable (String) -> Void
    ) {
        calls = ProgramCalls(host: host)
        self.files = files
        self.features = features
        self.report = report
    }

    var traits: RemoteTraits { features().traits }

    func close() async { await calls.host.close() }

    func retryNow() async { await calls.host.retryNow() }

    // MARK: - Reading

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        let result: EntryResult = try await calls.ask("stat", PathParameters(path: path.text))
        return try result.entry.entry(name: path.name ?? "", features())
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        let page = token.map { String(decoding: $0, as: UTF8.self) }
        let result: ListResult = try await calls.ask(
            "list", ListParameters(path: path.text, page: page, limit: limit))
        let features = features()
        var listing = RemoteListing(entries: [], next: result.next.map { Array($0.utf8) })
        var mistakes: [FileProviderError] = []
        for element in result.entries {
            do throws(FileProviderError) {
                listing.entries.append(try element.entry(features))
            } catch {
                mistakes.append(error)
            }
        }
        if let first = mistakes.first {
            listing.leavesOut = true
            let count = "\(mistakes.count) of \(result.entries.count)"
            report("\(count) items in '/\(path.text)' cannot be shown: \(first.message)")
        }
        return listing
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        if let range, range.isEmpty { return try await entry(at: path) }
        return try await files.fetch(path.text, range: range, isWhole: features().ranges != true, into: sink) {
            [self] start, length, into, last in
            let expected = (last as RemoteEntry?)?.tag ?? tag
            let result: EntryResult = try await calls.ask(
                "read",
                ReadParameters(
                    path: path.text, tag: expected.flatMap(ProgramTag.text), offset: start, length: length, into: into))
            let entry = try result.entry.entry(name: path.name ?? "", features())
            guard entry.kind == .file, let size = entry.size else {
                throw FileProviderError(.malformedResponse, "'\(path.text)' is no file, and the program has read it")
            }
            guard entry.tag == expected ?? entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
            return (entry, size)
        }
    }

    var hasThumbnails: Bool { features().thumbnails == true }

    func thumbnail(of path: RemotePath, size: ThumbnailSize) async throws -> [UInt8]? {
        try await files.fetchThumbnail(of: path.text) { [calls] into in
            try await calls.ask(
                "thumbnail",
                ThumbnailParameters(path: path.text, width: size.width, height: size.height, into: into))
        }
    }

    func quota() async throws -> RemoteQuota? {
        guard features().quota == true else { return nil }
        let result: QuotaResult = try await calls.ask("quota", NoParameters())
        return RemoteQuota(result)
    }

    // MARK: - Changing

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let sent = features().uploadProgress == true ? SentBytes(of: contents) : nil
        return try await files.withCopy(of: contents, countsAsSent: sent == nil) { [self] from in
            var change = ChangeParameters(path: path)
            (change.from, change.size) = (from, contents.size)
            change.take(attributes)
            let entry = try await changing("write", change, path, if: condition) { sent?.note($0) }
            guard entry.kind == .file, entry.size == contents.size else {
                throw FileProviderError(
                    .malformedResponse,
                    "the program has written '\(path.text)' with \(entry.size ?? 0) bytes instead of \(contents.size)")
            }
            sent?.noteAll()
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
        change.kind = ProgramEntry.name(of: kind)
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
        let result: EntryResult = try await calls.change("setAttributes", change)
        for name in result.notStored ?? [] {
            if name == "modified" { notStored.insert(.contentModificationDate) }
            if name == "permissions" { notStored.insert(.permissions) }
        }
        return (try result.entry.entry(name: path.name ?? "", features), notStored)
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        var change = ChangeParameters(path: path)
        change.kind = ProgramEntry.name(of: kind)
        do {
            if try await !holds(condition, at: path, passingTo: &change) { return }
            let _: NoResult = try await calls.change("delete", change)
        } catch let failure as ProgramFailure where failure.isCondition {
            throw try await conditionFailure(failure, at: path)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
    }

    // MARK: - Conditions

    /// Makes a change, and looks before it where the program does not check conditions.
    private func changing(
        _ method: String, _ change: ChangeParameters, _ path: RemotePath, if condition: RemoteCondition,
        onSent: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> RemoteEntry {
        var change = change
        _ = try await holds(condition, at: path, passingTo: &change)
        do {
            let result: EntryResult = try await calls.change(method, change, onSent: onSent)
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
        let present = try await ifExists { try await entry(at: path) }
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
        return RemoteConditionFailure(present: try await ifExists { try await entry(at: path) })
    }
}

extension ChangeParameters {
    fileprivate mutating func take(_ attributes: RemoteAttributes) {
        modified = attributes.contentModificationDate?.seconds1970
        permissions = attributes.permissions
    }
}
