import FileProvider
import Foundation
import Logging
import Replica
import SystemPackage

/// What came of making a folder a domain.
struct ImportedFolder: Sendable {
    var summary: ImportSummary
    var isTaken: Bool
    /// What could not be removed from the folder.
    var left: [String]
}

extension DomainStore {
    /// Makes a folder a domain, without changing the folder before all of it is taken in. Blocks.
    ///
    /// - Throws: what is in the way; the folder is as it was then.
    func importFolder(
        _ folder: FilePath, as domain: FileProviderDomain, mountpoint: String, isTaken: Bool, logger: Logger,
        progress: (ImportSummary) -> Void
    ) throws -> ImportedFolder {
        let place = try newStaging(for: domain.identifier)
        let summary: ImportSummary
        do {
            let replica = try Replica(at: place, readers: 4, logger: logger)
            do {
                var importing = try Importing(replica, from: folder)
                summary = try importing.run(progress: progress)
                try replica.database.set(.source, to: domain.source)
                try replica.database.set(.mountpoint, to: mountpoint)
                try replica.database.set(.options, to: DomainOptions().json)
                if isTaken { try replica.database.set(.importedFrom, to: folder.string) }
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
        let left = try finishImport(of: domain.identifier, logger: logger)
        return ImportedFolder(summary: summary, isTaken: isTaken, left: left)
    }

    /// Removes from the folder that a domain was made of what the domain has, unless that is done. Blocks.
    ///
    /// - Returns: what is left there.
    @discardableResult
    func finishImport(of name: String, logger: Logger) throws -> [String] {
        guard let record = try DomainRecord(ofReplicaIn: directory(of: name)), let folder = record.importedFrom else {
            return []
        }
        let replica = try Replica(at: directory(of: name), readers: 2, logger: logger)
        defer { try? replica.close() }
        var taken = TakenFolder(replica, FilePath(folder))
        let isMountpoint = record.mountpoint?.utf8.elementsEqual(folder.utf8) == true
        let left = try taken.clear(keepsFolder: isMountpoint)
        for path in left { logger.warning("'\(path)' is left of the folder that '\(name)' was made of") }
        try replica.database.set(.importedFrom, to: nil as String?)
        return left
    }
}
