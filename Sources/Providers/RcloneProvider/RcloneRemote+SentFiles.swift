import FileProvider
import FileProviderPaths
import ProgramProvider
import SystemPackage

/// Tells what was uploaded from what another client has written in its place since, which may be as long.
extension RcloneRemote {
    /// Looks up a file that was just uploaded directly to its place. It is recognized by its checksum, where the backend lists one, or by
    /// the date that it was sent with; elsewhere its bytes are read.
    ///
    /// - Parameter copy: the file that was uploaded.
    /// - Throws: ``RemoteConditionFailure`` for a file that is as long and not what was sent.
    func present(_ copy: String, sentTo path: RemotePath, size: Int64) async throws -> RemoteEntry {
        let there = try await stored(path, size: size)
        guard try await isSent(copy, there, at: path, size: size) else {
            throw RemoteConditionFailure(present: there)
        }
        return there
    }

    private func isSent(_ copy: String, _ there: RemoteEntry, at path: RemotePath, size: Int64) async throws -> Bool {
        if size == 0 { return true }
        let features = try await features()
        let own = try await host.reading { [self] session in
            let name = FilePath(copy).lastComponent?.string ?? ""
            let stat = try await session.call(
                "operations/stat",
                RcloneCall(fs: files.directory.string, remote: name, opt: options(features, isFile: true)),
                returning: RcloneStat.self)
            return try stat.item?.entry(features)
        }
        // The tag is the checksum.
        if let own, own.isTagStrong, there.isTagStrong { return own.tag == there.tag }
        if let precision = features.precision, let sent = own?.attributes.contentModificationDate,
            let date = there.attributes.contentModificationDate
        {
            let (difference, overflow) = sent.nanosecondsSince1970.subtractingReportingOverflow(
                date.nanosecondsSince1970)
            // Some backends round, others cut.
            if !overflow, difference.magnitude < max(1, precision.magnitude) { return true }
        }
        let source: ContentSource
        do {
            source = ContentSource(
                descriptor: try FileDescriptor.open(FilePath(copy), .readOnly, options: .closeOnExec), size: size)
        } catch let error as Errno {
            throw FileProviderError.posix(error)
        }
        do {
            return try await source.equals { _ = try await read(path, tag: there.tag, range: nil, into: $0) }
        } catch let error as FileProviderError
            where [.versionNoLongerAvailable, .noSuchItem].contains(error.code)
        {
            return false
        }
    }
}
