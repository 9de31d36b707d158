/// What the name of a file says of the picture in it.
package enum PictureName {
    private static let withThumbnail: Set<String> = ["jpg", "jpeg", "jpe", "arw", "cr2", "dng", "nef", "pef", "srw"]
    private static let scaled: Set<String> = ["gif", "jpg", "jpeg", "jpe", "png", "webp"]
    private static let others: Set<String> = ["avif", "bmp", "heic", "jxl", "svg", "tif", "tiff"]

    package static func isPicture(_ name: String) -> Bool {
        suffix(name).map { withThumbnail.contains($0) || scaled.contains($0) || others.contains($0) } == true
    }

    /// Whether it is a picture of a format in which cameras store an ``EmbeddedThumbnail``.
    static func mayHoldThumbnail(_ name: String) -> Bool { suffix(name).map(withThumbnail.contains) == true }

    /// Whether it is a picture of a format that the system makes thumbnails of.
    static func isScaled(_ name: String) -> Bool { suffix(name).map(scaled.contains) == true }

    private static func suffix(_ name: String) -> String? {
        name.lastIndex(of: ".").map { name[name.index(after: $0)...].lowercased() }
    }
}
