import FileProviderPaths

/// rclone lists a directory at once.
typealias RcloneListings = KeptListings<ArraySlice<RemoteEntry>>

extension RcloneListings {
    /// The first entries, and a token for the others, which are kept. They are not copied: a directory has many parts.
    func part(of entries: ArraySlice<RemoteEntry>, _ limit: Int) -> RemoteListing {
        var part = RemoteListing(entries: Array(entries.prefix(limit)))
        if entries.count > limit { part.next = keep(entries.dropFirst(limit)).token }
        return part
    }
}
