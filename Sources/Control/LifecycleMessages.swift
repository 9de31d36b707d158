/// What of a domain's data stays when it is removed.
package enum KeptData: String, Codable, Hashable, Sendable, CaseIterable {
    case none
    /// What the remote has not got.
    case dirty
    /// All whose content is here.
    case downloaded
}

/// How to remove a domain.
package struct RemoveArguments: Codable, Hashable, Sendable {
    package var domain: DomainReference
    /// Nil for `dirty` when something is not on the remote, else `none`.
    package var keep: KeptData?
    /// The folder for what is kept; nil for one beside the state.
    package var directory: String?
    /// Whether what only this machine has may go, and open files may.
    package var isForced: Bool

    package init(domain: DomainReference, keep: KeptData?, directory: String?, isForced: Bool) {
        self.domain = domain
        self.keep = keep
        self.directory = directory
        self.isForced = isForced
    }
}

/// What became of a domain that was removed. Absent is null.
package struct RemoveReport: Codable, Hashable, Sendable {
    package var name: String
    package var keep: KeptData
    /// Where what was kept lies; null when nothing was.
    package var directory: String?
    /// How many files were kept.
    package var files: Int
    package var bytes: Int64

    package init(name: String, keep: KeptData, directory: String?, files: Int, bytes: Int64) {
        self.name = name
        self.keep = keep
        self.directory = directory
        self.files = files
        self.bytes = bytes
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(keep, forKey: .keep)
        try container.encode(directory, forKey: .directory)
        try container.encode(files, forKey: .files)
        try container.encode(bytes, forKey: .bytes)
    }
}

/// How to make a folder a domain. Paths are absolute.
package struct ImportArguments: Codable, Hashable, Sendable {
    package var folder: String
    package var source: String
    package var directory: String
    /// The domain's name; nil for one made of the directory's.
    package var name: String?
    /// Who the remote is to let in. Never logged.
    package var credentials: GivenCredentials?
    /// Where an object store is, as far as the source does not say so.
    package var objectStore: ObjectStoreOptions?

    package init(
        folder: String, source: String, directory: String, name: String?, credentials: GivenCredentials? = nil,
        objectStore: ObjectStoreOptions? = nil
    ) {
        self.credentials = credentials
        self.objectStore = objectStore
        self.folder = folder
        self.source = source
        self.directory = directory
        self.name = name
    }
}

/// A folder that has become a domain.
package struct ImportReport: Codable, Hashable, Sendable {
    package var domain: DomainSummary
    package var items: Int
    package var bytes: Int64
    /// Whether the folder's files are the domain's now. Those that could not be taken were copied.
    package var isTaken: Bool
    /// What was left in the folder, because it could not be removed.
    package var left: [String]

    package init(domain: DomainSummary, items: Int, bytes: Int64, isTaken: Bool, left: [String]) {
        self.domain = domain
        self.items = items
        self.bytes = bytes
        self.isTaken = isTaken
        self.left = left
    }
}

/// What a reimport that was waited for came to.
package struct ReimportReport: Codable, Hashable, Sendable {
    package var path: String
    /// Whether it is complete.
    package var isFinished: Bool
    /// What the provider could not take, each with its reason; not more than a hundred.
    package var refusals: [Refusal]

    package init(path: String, isFinished: Bool, refusals: [Refusal]) {
        self.path = path
        self.isFinished = isFinished
        self.refusals = refusals
    }
}
