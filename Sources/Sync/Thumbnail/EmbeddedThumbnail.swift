/// The small JPEG image that cameras put near the beginning of a picture: in JPEG files, and in raw formats that are TIFF
/// files. (Exif 2.32, 4.5.1, 4.5.5 and 4.6.9)
enum EmbeddedThumbnail {
    /// As many bytes of a file have it: an Exif segment is no longer.
    static let reach: Int64 = 64 << 10

    /// The thumbnail in the first bytes of a picture, as a JPEG file that is turned like the picture; nil where there is none.
    static func find(in bytes: ArraySlice<UInt8>) -> [UInt8]? {
        guard let fields = bytes.starts(with: startOfImage) ? exif(in: bytes) : bytes,
            let directories = Directories(fields), let (orientation, range) = directories.thumbnail
        else { return nil }
        let image = fields[range]
        guard image.starts(with: startOfImage) else { return nil }
        return startOfImage + segment(with: orientation) + image.dropFirst(startOfImage.count)
    }

    private static let startOfImage: [UInt8] = [0xFF, 0xD8]
    private static let exifHeader = Array("Exif\0\0".utf8)

    /// The TIFF fields of a JPEG file.
    private static func exif(in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var rest = bytes.dropFirst(startOfImage.count)
        // Segments before the image itself: a marker, and a length that counts itself.
        while rest.count >= 4, rest[rest.startIndex] == 0xFF, rest[rest.startIndex + 1] != 0xDA {
            let length = Int(rest[rest.startIndex + 2]) << 8 | Int(rest[rest.startIndex + 3])
            guard length >= 2 else { return nil }
            let content = rest.dropFirst(4).prefix(length - 2)
            if rest[rest.startIndex + 1] == 0xE1, content.starts(with: exifHeader) {
                return content.dropFirst(exifHeader.count)
            }
            rest = rest.dropFirst(2 + length)
        }
        return nil
    }

    /// A thumbnail has no fields of its own: a program that shows it has to learn how the camera was held.
    private static func segment(with orientation: UInt8) -> [UInt8] {
        let field: [UInt8] = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
        let tiff = Array("MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1] + field + [0, 0, 0, 0]
        let content = exifHeader + tiff
        return [0xFF, 0xE1, 0, UInt8(content.count + 2)] + content
    }

    /// The directories of TIFF fields: the first is of the picture, the second of its thumbnail. (TIFF 6.0, section 2)
    private struct Directories {
        private let bytes: ArraySlice<UInt8>
        private let isLittleEndian: Bool

        private static let (orientation, offset, length) = (UInt64(0x0112), UInt64(0x0201), UInt64(0x0202))

        init?(_ bytes: ArraySlice<UInt8>) {
            self.bytes = bytes
            switch Array(bytes.prefix(2)) {
            case Array("II".utf8): isLittleEndian = true
            case Array("MM".utf8): isLittleEndian = false
            default: return nil
            }
            guard number(at: 2, 2) == 42 else { return nil }
        }

        /// How the picture is to be turned, and where its thumbnail is.
        var thumbnail: (orientation: UInt8, range: Range<Int>)? {
            guard let first = number(at: 4, 4), let picture = fields(at: first),
                let second = number(at: picture.end, 4), second > 0, let small = fields(at: second),
                let offset = small.values[Self.offset], let length = small.values[Self.length]
            else { return nil }
            guard length > 0, offset + length <= UInt64(bytes.count) else { return nil }
            let start = bytes.startIndex + Int(offset)
            // A damaged file may have any number there.
            let orientation = UInt8(exactly: picture.values[Self.orientation] ?? 1) ?? 1
            return (orientation, start..<start + Int(length))
        }

        /// The short and long numbers among the fields of a directory, by tag, and where the directory ends.
        private func fields(at offset: UInt64) -> (values: [UInt64: UInt64], end: UInt64)? {
            guard let count = number(at: offset, 2) else { return nil }
            var values: [UInt64: UInt64] = [:]
            for index in 0..<count {
                let field = offset + 2 + index * 12
                guard let tag = number(at: field, 2), let type = number(at: field + 2, 2) else { return nil }
                if type == 3 { values[tag] = number(at: field + 8, 2) }
                if type == 4 { values[tag] = number(at: field + 8, 4) }
            }
            return (values, offset + 2 + count * 12)
        }

        private func number(at offset: UInt64, _ count: Int) -> UInt64? {
            guard offset + UInt64(count) <= UInt64(bytes.count) else { return nil }
            let start = bytes.startIndex + Int(offset)
            let digits = bytes[start..<start + count]
            return (isLittleEndian ? Array(digits.reversed()) : Array(digits)).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }
}
