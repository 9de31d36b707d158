package struct CheckReport: Codable, Hashable, Sendable {
    /// A problem, repaired or not.
    package struct Problem: Codable, Hashable, Sendable {
        /// `database`, `tree`, `contents`, `remote` or `bytes`.
        package var kind: String
        /// The item's path, or its name if it has no path; absent for a problem without an item.
        package var path: String?
        package var inode: Int64?
        package var message: String
        package var isMended: Bool

        package init(kind: String, path: String?, inode: Int64?, message: String, isMended: Bool) {
            self.kind = kind
            self.path = path
            self.inode = inode
            self.message = message
            self.isMended = isMended
        }
    }

    package var name: String
    package var items = 0
    /// The number of directories compared with the remote.
    package var directories = 0
    /// The number of files compared with the remote byte by byte.
    package var files = 0
    package var bytes: Int64 = 0
    package var problems: [Problem] = []
    /// The reason why the comparison with the remote is missing or incomplete; absent if it is complete.
    package var notCompared: String?
    /// The number of changes that are not on the remote yet, which are no problem; absent if they could not be counted.
    package var unsent: Int?

    package init(name: String) {
        self.name = name
    }

    /// Whether the check was complete and no problem is left.
    package var isSound: Bool { notCompared == nil && problems.allSatisfy(\.isMended) }
}
