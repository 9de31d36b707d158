import FileProviderPaths
import HTTPTransport

/// Where a server keeps deleted items, by Nextcloud's documentation of its trash bin and by the behavior of ownCloud 10.
struct TrashBin: Hashable, Sendable {
    enum Kind: String, Codable, Sendable, CaseIterable {
        /// `trashbin/USER/trash`. The server restores an item to its former place when it is moved to
        /// `trashbin/USER/restore`.
        case nextcloud
        /// `trash-bin/USER`. Items are moved to any place among the files; their content cannot be read.
        case ownCloud
    }

    let kind: Kind
    let items: CollectionAddress
    /// The collection to which an item is moved to restore it.
    let restored: CollectionAddress
    let files: CollectionAddress
    private let mounted: RemotePath

    /// - Returns: nil for a URL that does not name the user.
    init?(_ kind: Kind, of base: HTTPURL) {
        guard let account = OwnCloudAccount(of: base) else { return nil }
        self.kind = kind
        files = account.files
        mounted = account.mounted
        switch kind {
        case .nextcloud:
            items = account.collection("trashbin", "trash")
            restored = account.collection("trashbin", "restore")
        case .ownCloud:
            items = account.collection("trash-bin")
            restored = account.files
        }
    }

    /// Whether an item whose former path among the user's files was `location` was in the mounted collection.
    ///
    /// - Parameter location: nil where the server does not say.
    func wasMounted(_ location: RemotePath?) -> Bool { location?.isBelow(mounted) ?? mounted.names.isEmpty }

    /// The former path of an item, as servers write it; nil for an invalid one.
    static func location(_ text: String) -> RemotePath? {
        let names = text.split(separator: "/").map(String.init)
        return !names.isEmpty && names.allSatisfy(RemotePath.isName) ? RemotePath(names) : nil
    }
}
