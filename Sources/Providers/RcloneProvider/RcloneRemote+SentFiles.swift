import FileProvider
import FileProviderPaths
import Foundation
import HTTPTransport
import ProgramProvider
import SystemPackage

/// Tells what was uploaded from what another client has written in its place since, which may be as long.
extension RcloneRemote {
    /// The largest file that is read rather than asked for its date where that takes another program.
    private static let largestRead: Int64 = 1 << 20

    /// Looks up a file that was just uploaded directly to its place, and whose upload was answered. It is recognized by its checksum,
    /// where the backend lists one, or by the date that it was sent with; elsewhere its bytes are read, because nothing else
    /// tells them from what another client has written since.
    ///
    /// - Parameter copy: the file that was uploaded.
    /// - Throws: ``RemoteConditionFailure`` for a file that is as long and not what was sent.
    func present(_ copy: String, sentTo path: RemotePath, size: Int64) async throws -> RemoteEntry {
        let there = try await stored(path, size: size)
        guard try await isSent(copy, there, at: path, size: size, try await features()) else {
            throw RemoteConditionFailure(present: there)
        }
        return there
    }

    func isSent(
        _ copy: String, _ there: RemoteEntry, at path: RemotePath, size: Int64, _ features: RcloneFeatures
    ) async throws -> Bool {
        if size == 0 { return true }
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
        if let sent = own?.attributes.contentModificationDate {
            if let precision = features.precision, let date = there.attributes.contentModificationDate,
                Self.isSame(sent, date, precision)
            {
                return true
            }
            if let precision = features.slowPrecision, size > Self.largestRead,
                let date = try await storedDate(of: path), Self.isSame(sent, date, precision)
            {
                return true
            }
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

    /// Some backends round, others cut.
    private static func isSame(_ sent: FileTimestamp, _ date: FileTimestamp, _ precision: Int64) -> Bool {
        let (difference, overflow) = sent.nanosecondsSince1970.subtractingReportingOverflow(date.nanosecondsSince1970)
        return !overflow && difference.magnitude < max(1, precision.magnitude)
    }

    /// The date that a file was sent with. rclone's remote control has that of the server, but runs a command that asks for this one.
    ///
    /// - Returns: nil if it cannot be found out.
    private func storedDate(of path: RemotePath) async throws -> FileTimestamp? {
        let said = try await host.reading { [self] session in
            try await session.call(
                "core/command",
                RcloneCall(command: "lsjson", arg: ["--stat", "--no-mimetype", source.directory(path)]),
                returning: RcloneCommandResult.self)
        }
        guard said.error != true, let text = said.result, let start = text.firstIndex(of: "{") else { return nil }
        let item = try? JSONDecoder().decode(RcloneItem.self, from: Data(text[start...].utf8))
        return item?.ModTime.flatMap { HTTPDate.timestamp(iso8601: $0) }
            .map { FileTimestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds) }
    }
}
