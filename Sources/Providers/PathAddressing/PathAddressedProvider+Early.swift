import FileProvider

/// A remote that takes a file's bytes while the file is being written.
package protocol EarlyRemote: PathRemote {
    /// Sends ahead, under a hidden name in a directory, what is written, until ``PathRemote/write(_:to:attributes:if:)``
    /// with the whole content has taken it over, or nobody wants it any more. What is of no use is removed.
    func receive(_ content: GrowingContent, in directory: RemotePath) async
}

extension PathAddressedProvider: EarlyContentReceiver {
    package func receive(_ content: GrowingContent, in parent: ItemIdentifier) async {
        guard let remote = remote as? any EarlyRemote, let directory = paths.path(of: parent) else { return }
        await remote.receive(content, in: directory)
    }
}
