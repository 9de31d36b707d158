import FileProvider
import FileProviderTesting

/// Checks of single calls of the level items, of which the conformance suite sees only what the provider makes of them.
enum ItemCheck: String, CaseIterable, Sendable {
    case staleFetchesAreRefused
    case thumbnailsAreOfPresentContent

    /// - Throws: what is wrong.
    func run(_ client: ItemClient) async throws {
        switch self {
        case .staleFetchesAreRefused: try await checkFetching(client)
        case .thumbnailsAreOfPresentContent: try await client.checkThumbnails()
        }
    }

    private func checkFetching(_ client: ItemClient) async throws {
        try await client.write(Array("old".utf8), to: "file")
        let old = try await client.session.find("file")
        try await client.write(Array("new content".utf8), to: "file")
        try await client.expectRefusal(
            toRead: old.itemIdentifier.rawValue, version: old.itemVersion.contentVersion,
            "'fetchContents' with the 'contentVersion'")
    }
}
