import Foundation
import Syscalls
import SystemPackage

/// What a crash leaves on the disk of a directory that the test goes on writing to.
///
/// `FileManager.copyItem(atPath:toPath:)` does not end when a file gets shorter while it is copied, as a database may whenever its log
/// is moved into it. And files that are copied one after another may be of different moments: the copy is made again if the names,
/// sizes or times of files have changed meanwhile.
package enum DiskImage {
    package struct NeverAtRest: Error {}

    private struct File: Equatable {
        var name: String
        var size: Int64
        var modified: FileMoment
    }

    /// Copies all of a directory as it was at one moment.
    ///
    /// - Parameter suffix: files whose names end so are left out.
    /// - Throws: ``NeverAtRest`` when files change in all of many attempts; what Foundation throws.
    package static func copy(_ directory: FilePath, to copy: FilePath, without suffix: String? = nil) throws {
        for _ in 0..<200 {
            do {
                let before = try files(in: directory, without: suffix)
                try copyAll(before.map(\.name), from: directory, to: copy)
                if try files(in: directory, without: suffix) == before { return }
            } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
                // A file was removed meanwhile.
            } catch Errno.noSuchFileOrDirectory {
                // Likewise.
            }
            try? FileManager.default.removeItem(atPath: copy.string)
        }
        throw NeverAtRest()
    }

    private static func files(in directory: FilePath, without suffix: String?) throws -> [File] {
        try FileManager.default.subpathsOfDirectory(atPath: directory.string).sorted()
            .filter { name in suffix.map { !name.hasSuffix($0) } ?? true }
            .map { name in
                let status = try FileStatus(at: directory.appending(name))
                return File(name: name, size: status.size, modified: status.modified)
            }
    }

    private static func copyAll(_ names: [String], from directory: FilePath, to copy: FilePath) throws {
        let files = FileManager.default
        try files.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
        for name in names {
            let (old, new) = (directory.appending(name), copy.appending(name))
            let status = try FileStatus(at: old)
            let attributes: [FileAttributeKey: Any] = [.posixPermissions: Int(status.permissions)]
            if status.kind == .directory {
                try files.createDirectory(
                    atPath: new.string, withIntermediateDirectories: true, attributes: attributes)
            } else {
                try Data(contentsOf: URL(fileURLWithPath: old.string)).write(to: URL(fileURLWithPath: new.string))
                try files.setAttributes(attributes, ofItemAtPath: new.string)
                try new.setModificationTime(to: status.modified)
            }
        }
    }
}
