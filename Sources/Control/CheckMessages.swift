/// What is to be checked, and how.
package struct CheckArguments: Codable, Hashable, Sendable {
    /// Nil for all domains that are known.
    package var domain: DomainReference?
    /// Whether every file that is here is fetched and compared.
    package var comparesContent: Bool
    /// Whether what is found is mended.
    package var isRepairing: Bool

    package init(domain: DomainReference?, comparesContent: Bool, isRepairing: Bool) {
        self.domain = domain
        self.comparesContent = comparesContent
        self.isRepairing = isRepairing
    }
}

/// What checking a domain came to.
package struct CheckReport: Codable, Hashable, Sendable {
    /// Something that is wrong, or was.
    package struct Problem: Codable, Hashable, Sendable {
        /// `database`, `tree`, `contents`, `remote` or `bytes`.
        package var kind: String
        /// Where the item is shown, or its name where it is not; absent for what is about no item.
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
    /// How many items the database knows.
    package var items: Int
    /// How many directories were compared with the remote.
    package var directories: Int
    /// How many files were compared with the remote, byte by byte.
    package var files: Int
    package var bytes: Int64
    package var problems: [Problem]
    /// Why something was not compared with the remote; absent when it was.
    package var notCompared: String?

    package init(name: String) {
        self.name = name
        items = 0
        directories = 0
        files = 0
        bytes = 0
        problems = []
    }

    /// Whether nothing is wrong any more, and all of it was looked at.
    package var isSound: Bool { notCompared == nil && problems.allSatisfy(\.isMended) }
}
