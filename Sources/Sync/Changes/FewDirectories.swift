import Replica

/// Compares a few listed directories, and nothing else.
struct FewDirectories: SyncPart {
    let context: SyncContext
    let comparison: DirectoryComparison
    let reports: ReportedChanges

    /// - Parameter areReported: the remote can be asked whether something has changed in a directory.
    /// - Returns: the directories that were compared; nil where an item is missing from one of them. It may have moved to another: only
    ///   a comparison of all of them can tell.
    func compare(_ directories: [InodeNumber], areReported: Bool = false) async throws -> [InodeNumber]? {
        _ = replica.ordering.takeMissing()
        let found = FoundMarks()
        var compared: [InodeNumber] = []
        var left: Set<InodeNumber> = []
        for number in directories {
            guard let item = try replica.database.item(ofInode: number), let identifier = item.identifier,
                item.inode.kind == .directory, item.inode.content == .materialized, item.trash == nil,
                try !replica.database.reimports.hasItemsToOffer(in: number)
            else { continue }
            let directory = ListedDirectory(number: number, identifier: identifier)
            if areReported, try await reports.isUnchanged(directory, isForAll: false, found) { continue }
            switch try await comparison.compare(number) {
            case .compared: compared.append(number)
            case .gone: break
            case .left: left.insert(number)
            }
        }
        guard replica.ordering.takeMissing().isEmpty else { return nil }
        let marks = ReportedChanges.Marks(ofDirectories: found.marks)
        try await reports.keep(marks, except: left, isWhole: false)
        return compared
    }

    /// As ``compare(_:areReported:)``, for directories that were noted to be compared.
    ///
    /// - Returns: whether nothing is missing from one of them. Otherwise all stay noted.
    func compareNoted(_ directories: [InodeNumber]) async throws -> Bool {
        try await commits.commit(changingNames: false) { ingestion in
            for number in directories { try ingestion.listings.beginComparing(number) }
        }
        guard let compared = try await compare(directories) else { return false }
        try await commits.commit(changingNames: false) { ingestion in
            for number in compared { try ingestion.listings.finishComparing(number) }
        }
        return true
    }
}
