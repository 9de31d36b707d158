import Replica

/// The date of a directory, which is sent once the remote has what was changed in the directory.
struct DirectoryDate {
    let directory: ItemRecord
    let resolver: PathResolver

    /// The path of something in the directory for which the date waits, and what keeps that from being sent; nil where the date does
    /// not wait.
    func obstacle() throws -> (path: String, reason: SendingObstacle?)? {
        let database = resolver.host.replica.database
        guard let mark = try database.changeBeforeDate(of: directory), let path = try path(of: mark) else { return nil }
        return (path, try database.obstacle(toSending: mark))
    }

    private func path(of mark: PendingMark) throws -> String? {
        let database = resolver.host.replica.database
        switch mark {
        case .item(let row):
            guard let item = try database.item(row: row) else { return nil }
            return resolver.path(of: item) ?? item.name
        case .deletion(let row):
            guard let deletion = try database.pendingDeletions(after: row - 1, limit: 1).first, deletion.id == row
            else { return nil }
            return ([resolver.mountpoint] + (try database.path(of: deletion))).joined(separator: "/")
        case .reimport: return nil
        }
    }
}
