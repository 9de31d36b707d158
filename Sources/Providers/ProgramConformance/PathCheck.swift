import FileProvider
import FileProviderPaths
import FileProviderTesting

/// Checks of single calls of the level paths. The conformance suite cannot see them: the provider looks before each change, so
/// a program that ignores a condition fails only when another client changes something in between, and it leaves out what is
/// listed twice.
enum PathCheck: String, CaseIterable, Sendable {
    case entriesAreListedOnce
    case staleReadsAreRefused
    case staleWritesAreRefused
    case staleDeletionsAreRefused
    case takenPathsAreRefused
    case missingItemsAreDeleted
    case onlyEmptyDirectoriesAreDeleted
    case hiddenNamesAreListed
    case announcedAttributesAreStored
    case thumbnailsAreOfPresentContent

    /// - Throws: what is wrong.
    func run(_ client: PathClient) async throws {
        switch self {
        case .entriesAreListedOnce: try await checkListing(client)
        case .staleReadsAreRefused: try await checkReading(client)
        case .staleWritesAreRefused: try await checkWriting(client)
        case .staleDeletionsAreRefused: try await checkDeleting(client)
        case .takenPathsAreRefused: try await checkTakenPaths(client)
        case .missingItemsAreDeleted:
            try await client.remote.delete(RemotePath(["missing"]), kind: .file, if: .always)
            try await client.remote.delete(RemotePath(["missing"]), kind: .directory, if: .always)
        case .onlyEmptyDirectoriesAreDeleted: try await checkEmptiness(client)
        case .hiddenNamesAreListed:
            let name = HiddenName.make()
            try await client.write([1], to: name)
            let isListed = try await client.names().contains(name)
            // Nothing that is not listed is found at the end.
            try await client.remote.delete(RemotePath([name]), kind: .file, if: .always)
            try require(isListed, "'\(name)' was written and is not listed")
        case .announcedAttributesAreStored: try await checkAttributes(client)
        case .thumbnailsAreOfPresentContent: try await client.checkThumbnails()
        }
    }

    private func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw ConformanceFailure(what()) }
    }

    /// Two contents of different sizes, so that also tags of size and date differ.
    private static let old = Array("old".utf8)
    private static let new = Array("new content".utf8)
    private static let file = RemotePath(["file"])

    /// Writes a file, and another client writes it again.
    ///
    /// - Returns: the tag of the content that was replaced.
    private func makeStale(_ client: PathClient) async throws -> [UInt8] {
        try await client.write(Self.old, to: "file")
        let tag = try await client.remote.entry(at: Self.file).tag
        try await client.write(Self.new, to: "file")
        try require(
            try await client.remote.entry(at: Self.file).tag != tag, "other content of another size has the same 'tag'")
        return tag
    }

    private func requireNewContent(_ client: PathClient) async throws {
        let sink = CollectingSink()
        _ = try await client.remote.read(Self.file, tag: nil, range: nil, into: sink)
        try require(
            try sink.bytes(in: 0..<Int64(Self.new.count)) == Self.new, "the content of another client was overwritten")
    }

    private func checkListing(_ client: PathClient) async throws {
        let names = (0..<5).map { "file \($0)" }
        for name in names { try await client.write([1], to: name) }
        for limit in [2, 1000] {
            var listed: [String] = []
            try await client.remote.visitListing(of: .root, limit: limit) { part in
                listed += part.entries.map(\.name)
                return true
            }
            try require(
                listed.sorted() == names, "'list' with 'limit' \(limit) has \(listed.sorted()) instead of \(names)")
        }
    }

    private func checkReading(_ client: PathClient) async throws {
        let tag = try await makeStale(client)
        do {
            _ = try await client.remote.read(Self.file, tag: tag, range: nil, into: CollectingSink())
        } catch let error as FileProviderError where error.code == .versionNoLongerAvailable {
            return try await client.expectRefusal(toRead: "file", version: tag, "'read' with the 'tag'")
        }
        throw ConformanceFailure("a file is read with the 'tag' of replaced content")
    }

    private func checkWriting(_ client: PathClient) async throws {
        let tag = try await makeStale(client)
        try await expectRefusal("'write' with the 'ifTag' of replaced content") {
            try await client.write(Self.old, to: "file", if: .unchanged(tag: tag))
        }
        try await requireNewContent(client)
        try await client.write(
            Self.old, to: "file", if: .unchanged(tag: try await client.remote.entry(at: Self.file).tag))
    }

    private func checkDeleting(_ client: PathClient) async throws {
        let tag = try await makeStale(client)
        try await expectRefusal("'delete' with the 'ifTag' of replaced content") {
            try await client.remote.delete(Self.file, kind: .file, if: .unchanged(tag: tag))
        }
        try await requireNewContent(client)
    }

    private func checkTakenPaths(_ client: PathClient) async throws {
        try await client.write(Self.new, to: "file")
        try await client.write(Self.old, to: "other")
        try await expectRefusal("'write' with 'ifAbsent' where a file is") {
            try await client.write(Self.old, to: "file", if: .absent)
        }
        try await expectRefusal("'makeDirectory' with 'ifAbsent' where a file is") {
            _ = try await client.remote.makeDirectory(at: Self.file, attributes: RemoteAttributes())
        }
        try await expectRefusal("'move' with 'ifAbsent' to a path where a file is") {
            _ = try await client.remote.move(RemotePath(["other"]), to: Self.file, kind: .file)
        }
        try await requireNewContent(client)
    }

    private func checkEmptiness(_ client: PathClient) async throws {
        let directory = RemotePath(["directory"])
        try await client.makeDirectory("directory")
        try await client.write([1], to: "directory/file")
        try await expectRefusal("'delete' with 'ifEmpty' of a directory with a file") {
            try await client.remote.delete(directory, kind: .directory, if: .empty)
        }
        try await client.delete("directory/file")
        // What an interrupted upload has left.
        try await client.write([1], to: "directory/" + HiddenName.make())
        try await client.remote.delete(directory, kind: .directory, if: .empty)
        try require(try await client.names().isEmpty, "a directory that holds hidden names alone was not deleted")
    }

    private func checkAttributes(_ client: PathClient) async throws {
        try await client.write([1], to: "file")
        let traits = client.remote.traits
        let wanted = RemoteAttributes(
            contentModificationDate: traits.storesModificationDates ? FileTimestamp(seconds: 1_500_000_000) : nil,
            permissions: traits.storesPermissions ? 0o640 : nil)
        guard wanted != RemoteAttributes() else { return }
        let (_, notStored) = try await client.remote.set(wanted, of: Self.file, kind: .file)
        let stored = try await client.remote.entry(at: Self.file).attributes
        if !notStored.contains(.contentModificationDate), let date = wanted.contentModificationDate {
            try require(
                stored.contentModificationDate?.seconds == date.seconds,
                "'setAttributes' did not store 'modified', which the features announce")
        }
        if !notStored.contains(.permissions), let permissions = wanted.permissions {
            try require(
                stored.permissions == permissions,
                "'setAttributes' did not store 'permissions', which the features announce")
        }
    }

    private func expectRefusal(_ what: String, _ call: () async throws -> Void) async throws {
        do {
            try await call()
        } catch is RemoteConditionFailure {
            return
        }
        throw ConformanceFailure("\(what) succeeds")
    }
}
