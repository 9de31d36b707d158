package enum KeptData: String, Codable, Hashable, Sendable, CaseIterable {
    case none
    /// Changes that have not been uploaded.
    case dirty
    /// All materialized items.
    case downloaded
}

package struct RemoveArguments: Codable, Hashable, Sendable {
    package var domain: DomainReference
    /// Nil for `dirty` if changes have not been uploaded, else `none`.
    package var keep: KeptData?
    /// The folder for kept data; nil for the default one in the state directory.
    package var directory: String?
    /// Whether changes that have not been uploaded may be discarded, and open files are ignored.
    package var isForced: Bool

    package init(domain: DomainReference, keep: KeptData?, directory: String?, isForced: Bool) {
        self.domain = domain
        self.keep = keep
        self.directory = directory
        self.isForced = isForced
    }
}

/// The result of `yonder remove`. Absent values are null.
package struct RemoveReport: Codable, Hashable, Sendable {
    package var name: String
    package var keep: KeptData
    /// The folder with the kept data; null if there is none.
    @ExplicitNull package var directory: String?
    package var files: Int
    package var bytes: Int64
    /// What could not be kept, and why, in words. Nil from an earlier daemon.
    package var notKept: [String]? = []
    /// The same as in other reports, with the path that each would have in the folder. Nil from an earlier daemon.
    package var refusals: [Refusal]? = []

    package init(name: String, keep: KeptData, directory: String?, files: Int, bytes: Int64) {
        self.name = name
        self.keep = keep
        self.directory = directory
        self.files = files
        self.bytes = bytes
    }
}

package struct ImportReport: Codable, Hashable, Sendable {
    package var domain: DomainSummary
    package var items: Int
    package var bytes: Int64
    /// Whether the files were moved into the domain; otherwise they were copied.
    package var isTaken: Bool
    /// The paths that could not be removed from the folder.
    package var left: [String]

    package init(domain: DomainSummary, items: Int, bytes: Int64, isTaken: Bool, left: [String]) {
        self.domain = domain
        self.items = items
        self.bytes = bytes
        self.isTaken = isTaken
        self.left = left
    }
}

package struct ReimportReport: Codable, Hashable, Sendable {
    package var path: String
    package var isFinished: Bool
    /// The items that the provider has refused, at most 100.
    package var refusals: [Refusal]

    package init(path: String, isFinished: Bool, refusals: [Refusal]) {
        self.path = path
        self.isFinished = isFinished
        self.refusals = refusals
    }
}
