import FileProvider
import Syscalls
import SystemPackage

extension TransferFiles {
    /// Fetches a thumbnail.
    ///
    /// - Parameters:
    ///   - name: the file in messages.
    ///   - call: lets the program write the image into the file `into`.
    /// - Returns: the image; nil if the file has no thumbnail.
    /// - Throws: `malformedResponse` if the program has written another number of bytes than it says, or too many; the errors of
    ///   the call.
    func fetchThumbnail(
        of name: String, _ call: (_ into: String) async throws -> ThumbnailResult
    ) async throws -> [UInt8]? {
        try await with { into, file in
            let size = try await call(into).size ?? 0
            return try await BlockingWork.run { () throws -> [UInt8]? in
                // Of the descriptor: whatever now has the path of the file is not read.
                let written = try file.lengths().size
                guard written <= ThumbnailSize.maximumByteCount else {
                    throw FileProviderError(
                        .malformedResponse,
                        "the program wrote a thumbnail of '\(name)' with \(written) bytes, and may write at most "
                            + "\(ThumbnailSize.maximumByteCount)")
                }
                let image = try file.readBytes(at: 0, count: Int(written))
                guard Int64(image.count) == size else {
                    throw FileProviderError(
                        .malformedResponse,
                        "the program wrote a thumbnail of '\(name)' with \(image.count) bytes, and answers with \(size)"
                    )
                }
                return image.isEmpty ? nil : image
            }
        }
    }
}
