import FileProvider

package protocol ReportingRemote: PathRemote {
    func changeReports() async throws -> ChangeReports

    /// The paths that were made, removed or changed: in a directory, or anywhere below it.
    ///
    /// - Parameters:
    ///   - mark: of an earlier report; nil to get only a mark. A mark of another directory, or one that is refused, counts
    ///     as nil.
    ///   - isDeep: whether changes below subdirectories count.
    /// - Throws: `noSuchItem`.
    func changes(since mark: ChangeMark?, at path: RemotePath, isDeep: Bool) async throws -> RemoteReport
}

/// The changes on a remote since a mark.
package struct RemoteReport: Hashable, Sendable {
    /// Nil where the remote does not say.
    package var paths: RemoteChanges?
    package var mark: ChangeMark?

    package init(paths: RemoteChanges?, mark: ChangeMark?) {
        self.paths = paths
        self.mark = mark
    }
}

package struct RemoteChanges: Hashable, Sendable {
    /// Made or changed.
    package var present: Set<RemotePath> = []
    /// Removed.
    package var removed: Set<RemotePath> = []
    /// Directories below which changes are not reported.
    package var untold: Set<RemotePath> = []

    package init() {}

    package var isEmpty: Bool { present.isEmpty && removed.isEmpty && untold.isEmpty }

    /// Whether a directory may have other children than before.
    func concern(_ directory: RemotePath, _ parents: Set<RemotePath>) -> Bool {
        if parents.contains(directory) || present.contains(directory) { return true }
        var above = directory
        while true {
            if removed.contains(above) || untold.contains(above) { return true }
            if above.names.isEmpty { return false }
            above = above.parent
        }
    }
}
