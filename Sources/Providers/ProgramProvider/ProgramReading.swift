import FileProvider

/// A program that is asked itself for the content of one version.
///
/// The provider compares each answer with the version that it asked for, and so hides a program that reads another one. The
/// conformance checks ask without that comparison.
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
}

extension ProgramRemote: ProgramReading {
    func read(_ item: String, exactly version: [UInt8], into file: String) async throws {
        guard let tag = ProgramTag.text(version) else { throw FileProviderError(.versionNoLongerAvailable) }
        let _: NoResult = try await calls.ask(
            "read", ReadParameters(path: item, tag: tag, offset: 0, length: nil, into: file))
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
}
