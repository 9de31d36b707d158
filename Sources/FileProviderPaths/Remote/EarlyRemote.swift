import FileProvider

/// A remote that receives a file's bytes while the file is being written.
package protocol EarlyRemote: PathRemote {
    /// Uploads, under a hidden name in a directory, a file that is being written, until
    /// ``PathRemote/write(_:to:attributes:if:)`` with the whole content has taken the upload over, or the caller is cancelled.
    /// An upload that is of no use is removed.
    func receive(_ content: GrowingContent, in directory: RemotePath) async
}
