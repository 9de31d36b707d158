import FileProvider

/// All objects whose keys begin with a prefix, one after the other.
struct KeyReader {
    let client: S3Client
    let prefix: String
    private var page: [S3Object] = []
    private var index = 0
    private var token: String?
    private var check = CycleCheck<String>()
    private var isLast = false
    private(set) var current: S3Object?
    /// How many objects were left out so far: see ``S3Listing/unreadable``.
    private(set) var unreadable = 0

    init(client: S3Client, prefix: String) {
        self.client = client
        self.prefix = prefix
    }

    mutating func next() async throws -> S3Object? {
        try await advance()
        return current
    }

    mutating func advance() async throws {
        while index >= page.count {
            if isLast {
                current = nil
                return
            }
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token)
            try check.check(listing.next, isEmpty: listing.entries.isEmpty, of: "'\(prefix)'")
            page = listing.entries.compactMap { if case .object(let object) = $0 { object } else { nil } }
            index = 0
            unreadable += listing.unreadable
            token = listing.next
            isLast = listing.next == nil
        }
        current = page[index]
        index += 1
    }
}
