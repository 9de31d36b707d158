import Control
import FileNames
import FileProvider
import Foundation
import Logging
import Replica
import Syscalls
import SystemPackage

struct ImportedFolder: Sendable {
    var summary: ImportSummary
    var isTaken: Bool
    /// The paths that could not be removed from the folder.
    var left: [String]
}

extension DomainStore {
    /// Imports a folder as a domain. The folder is not changed before the import is complete. Blocks.
    ///
    /// - Throws: the reason; the folder is then unchanged. `failed` if the domain was made, and the folder still has files of it:
    ///   ``finishImport(of:logger:)`` goes on.
    func importFolder(
        _ folder: FilePath, as domain: FileProviderDomain, mountpoint: String, options: DomainOptions, isTaken: Bool,
        logger: Logger, progress: (ImportSummary) -> Void
    ) throws -> ImportedFolder {
        let place = try newStaging(for: domain.identifier)
        let summary: ImportSummary
        do {
            let replica = try Replica(at: place, readers: 4, logger: logger)
            do {
                var importing = try Importing(replica, from: folder, isCopying: !isTaken)
                summary = try importing.run(progress: progress)
                try replica.database.set(.source, to: domain.source)
                try replica.database.set(.mountpoint, to: mountpoint)
                try options.keep(in: replica, of: domain.source, on: mountpoint, place)
                if isTaken { try replica.database.set(.importedFrom, to: folder.fileNameText) }
                try replica.close()
            } catch {
                try? replica.close()
                throw error
            }
            try adopt(place, as: domain.identifier)
        } catch {
            try? FileManager.default.removeItem(atPath: place.string)
            throw error
        }
        let name = domain.identifier
        do {
            let left = try finishImport(of: name, logger: logger)
            return ImportedFolder(summary: summary, isTaken: isTaken, left: left)
        } catch {
            throw ControlError(
                .failed,
                "imported as the domain '\(name)', which has all of its files, but not all could be removed from the folder: "
                    + "\(error). 'yonder mount \(ShellWord.escaped(name))' goes on", path: folder.fileNameText)
        }
    }

    /// Removes the imported items from their original folder, unless this was done before. Blocks.
    ///
    /// - Returns: the paths that are left.
    func finishImport(of name: String, logger: Logger) throws -> [String] {
        // The record is in the database that a rebuild may have left beside its place.
        try ReplicaRebuild.finish(in: directory(of: name))
        guard let record = try DomainRecord(ofReplicaIn: directory(of: name)), let folder = record.importedFrom else {
            return []
        }
        let replica = try Replica(at: directory(of: name), readers: 2, logger: logger)
        defer { try? replica.close() }
        var taken = TakenFolder(replica, FilePath(fileNamed: folder))
        let isMountpoint = record.mountpoint?.utf8.elementsEqual(folder.utf8) == true
        let left = try taken.clear(keepsFolder: isMountpoint)
        for path in left { logger.warning("'\(path)' is left of the folder that '\(name)' was made of") }
        try replica.database.set(.importedFrom, to: nil as String?)
        return left
    }
}
