import FileProvider
import FileProviderPaths

/// A program that is asked itself.
///
/// The provider compares each answer with the version that it asked for, and so hides a program that reads another one. It also
/// asks for no item that it knows to be gone. The conformance checks ask without that.
package protocol ProgramReading: Sendable {
    /// Has the program write a file's content into a local file.
    ///
    /// - Parameters:
    ///   - item: the path; on the level items, the identifier.
    ///   - version: the tag of an entry, or a content version.
    ///   - file: the path of an existing, empty file.
    /// - Throws: the program's error; `versionNoLongerAvailable` also for a tag that the daemon has made, which no program is
    ///   asked for.
    func read(_ item: String, exactly version: [UInt8], into file: String) async throws

    /// Whether the program has announced thumbnails.
    var hasThumbnails: Bool { get }

    /// Has the program make a thumbnail of a file; nil if the file has none.
    ///
    /// - Parameter item: as in ``read(_:exactly:into:)``.
    /// - Throws: the program's error.
    func thumbnail(of item: String, size: ThumbnailSize) async throws -> [UInt8]?
}

extension ProgramRemote: ProgramReading {
    func read(_ item: String, exactly version: [UInt8], into file: String) async throws {
        guard let tag = ProgramTag.text(version) else { throw FileProviderError(.versionNoLongerAvailable) }
        let _: NoResult = try await calls.ask(
            "read", ReadParameters(path: item, tag: tag, offset: 0, length: nil, into: file))
    }

    func thumbnail(of item: String, size: ThumbnailSize) async throws -> [UInt8]? {
        try await thumbnail(of: RemotePath(item.split(separator: "/").map(String.init)), size: size)
    }
}

extension ProgramItemProvider: ProgramReading {
    func read(_ item: String, exactly version: [UInt8], into file: String) async throws {
        let _: NoResult = try await calls.ask(
            "fetchContents",
            FetchParameters(
                itemIdentifier: item, contentVersion: version.text, offset: 0, length: nil, into: file,
                reason: FileProviderRequest.Reason.reading.rawValue))
    }

    var hasThumbnails: Bool { features.thumbnails }

    func thumbnail(of item: String, size: ThumbnailSize) async throws -> [UInt8]? {
        try await thumbnail(of: item, size: size, reason: .lookAhead)
    }
}
