import Crypto
import FileNames
import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// The thumbnails that the programs of a desktop share, by freedesktop.org's Thumbnail Managing Standard: PNG files that are named
/// after the URI of what they show and valid for one modification time.
struct ThumbnailCache: Sendable {
    /// The sizes that are made: a directory, and the length of the longer side in pixels. From large to small, because each is made of
    /// the one before.
    static let sizes = [(name: "large", pixels: 256), (name: "normal", pixels: 128)]

    /// A file that thumbnails show.
    struct Subject: Hashable, Sendable {
        let uri: String
        /// Seconds since 1970.
        let modifiedAt: Int64

        init(_ file: FilePath, modifiedAt: Int64) {
            uri = "file://" + Self.escaped(file)
            self.modifiedAt = modifiedAt
        }

        /// As GLib's `g_filename_to_uri` does it: other escapes would make another name.
        private static func escaped(_ file: FilePath) -> String {
            file.components.map { component in
                let bytes = FileNameText.bytes(of: component.fileName)
                return "/" + PercentEncoding.encode(bytes: bytes, keeping: "!*'()&=:@+$,")
            }.joined()
        }

        fileprivate var fileName: String { Insecure.MD5.hash(data: Data(uri.utf8)).hexadecimal + ".png" }
    }

    let directory: FilePath

    /// - Returns: nil without a home directory.
    init?(environment: [String: String]) {
        let cache = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        guard let place = cache ?? environment["HOME"].map({ $0 + "/.cache" }), place.hasPrefix("/") else { return nil }
        directory = FilePath(place).appending("thumbnails")
    }

    /// The valid thumbnails of a file, by the names of their directories; nil unless it has those of all sizes that are made.
    func images(of subject: Subject) -> [String: PNGFile]? {
        var images: [String: PNGFile] = [:]
        for size in Self.sizes {
            guard let image = image(of: subject, in: size.name) else { return nil }
            images[size.name] = image
        }
        return images
    }

    /// What a directory has for a file, if it is valid.
    private func image(of subject: Subject, in folder: String) -> PNGFile? {
        guard let bytes = try? path(of: subject, folder).contents(), let image = PNGFile(bytes) else { return nil }
        let texts = image.texts
        guard texts["Thumb::URI"] == subject.uri, texts["Thumb::MTime"] == String(subject.modifiedAt) else {
            return nil
        }
        return image
    }

    /// Removes what programs have recorded of a file of which they could make no thumbnail: they do not try again until it changes.
    ///
    /// - Returns: whether there was something.
    func removeFailures(of subject: Subject) -> Bool {
        let programs = (try? FileManager.default.contentsOfDirectory(atPath: directory.appending("fail").string)) ?? []
        let folders = programs.map { "fail/" + $0 }.filter { image(of: subject, in: $0) != nil }
        for folder in folders { try? path(of: subject, folder).unlinkIfPresent() }
        return !folders.isEmpty
    }

    /// Adds thumbnails, in place of those that are there.
    ///
    /// - Parameter images: by the names of their directories.
    func store(_ images: [String: PNGFile], of subject: Subject) throws {
        for (size, image) in images {
            var image = image
            image.set([
                "Thumb::URI": subject.uri, "Thumb::MTime": String(subject.modifiedAt), "Software": "Yonder",
            ])
            try store(image.bytes, in: path(of: subject, size))
        }
    }

    private func store(_ bytes: [UInt8], in file: FilePath) throws {
        let folder = file.removingLastComponent()
        try folder.makeDirectories(permissions: .ownerReadWriteExecute)
        // Another process, or a task of this one, may store the same thumbnail.
        let new = folder.appending(".yonder-\(UInt64.random(in: 0...UInt64.max))")
        let descriptor = try FileDescriptor.open(
            new, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        do {
            _ = try descriptor.closeAfter { try descriptor.writeAll(bytes) }
            try new.move(to: file)
        } catch {
            try? new.unlinkIfPresent()
            throw error
        }
    }

    private func path(of subject: Subject, _ size: String) -> FilePath {
        directory.appending(size).appending(subject.fileName)
    }
}
