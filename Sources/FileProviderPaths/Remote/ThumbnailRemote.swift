import FileProvider

package protocol ThumbnailRemote: PathRemote {
    /// Whether it does, as far as is known now.
    var hasThumbnails: Bool { get }

    /// A thumbnail of a file's present content, an image of a common format; nil where the file has none.
    ///
    /// - Throws: as with ``PathRemote``.
    func thumbnail(of path: RemotePath, size: ThumbnailSize) async throws -> [UInt8]?
}
