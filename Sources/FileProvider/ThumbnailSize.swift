/// The size of a thumbnail in pixels.
public struct ThumbnailSize: Hashable, Sendable {
    /// At least 1.
    public var width: Int
    /// At least 1.
    public var height: Int

    /// A size in pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The greatest length of the image file of a thumbnail, in bytes. The system ignores a larger one.
    public static let maximumByteCount = 4 << 20
}
