import FileProvider
import FileProviderPaths

/// Finds out whether names are free. A name that is asked for alone is looked up; several in one directory at once share a listing
/// of it, so that many new files cost few requests.
actor FreeNames {
    private struct Asked {
        var count = 0
        let listing = SharedRequest<Set<KeyBytes>?>()
        /// Whether one request does not list the directory.
        var isTooLarge = false
    }

    private var asked: [KeyBytes: Asked] = [:]

    /// - Parameters:
    ///   - keys: of all items that have the name.
    ///   - prefix: of the directory.
    ///   - list: the keys and prefixes in the directory; nil when one request does not list all of them.
    ///   - lookUp: whether nothing has the name. Called where the listing does not show that.
    func areFree(
        _ keys: [String], in prefix: String, list: @escaping @Sendable () async throws -> Set<KeyBytes>?,
        lookUp: @Sendable () async throws -> Bool
    ) async throws -> Bool {
        let directory = KeyBytes(prefix)
        var now = asked[directory] ?? Asked()
        let isAlone = now.count == 0
        now.count += 1
        asked[directory] = now
        defer { leave(directory) }
        if !isAlone, !now.isTooLarge {
            let listing = now.listing
            if let names = try await CallContext.waiting({ try await listing(list) }) {
                if keys.allSatisfy({ !names.contains(KeyBytes($0)) }) { return true }
            } else {
                asked[directory]?.isTooLarge = true
            }
        }
        return try await lookUp()
    }

    private func leave(_ directory: KeyBytes) {
        guard let count = asked[directory]?.count, count > 1 else { return asked[directory] = nil }
        asked[directory]?.count = count - 1
    }
}
