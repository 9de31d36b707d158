import Foundation
import Logging
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// Programs that stand for those that scale images: they only note that they were started, and give an image that they have.
struct PlayedScaler {
    let directory: TemporaryDirectory
    /// A PNG file of one pixel.
    let image: [UInt8]

    init() throws {
        directory = try TemporaryDirectory()
        let text = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
        image = Array(try #require(Data(base64Encoded: text)))
        _ = try directory.makeFile("image", image)
        _ = try directory.makeDirectory("programs")
        try program(ImageScaler.program, "echo $* >>\(directory["plain"].string); cat \(directory["image"].string) >$4")
        try program("bwrap", "exit 1")
    }

    func remove() { directory.remove() }

    /// Makes a program of lines of the shell.
    func program(_ name: String, _ lines: String) throws {
        let file = try directory.makeFile("programs/\(name)", Array("#!/bin/sh\n\(lines)\n".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.string)
    }

    func scaler(
        pauseAfterTrial: Duration = .seconds(600),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) -> ImageScaler {
        ImageScaler(
            directory: directory["scaling"],
            environment: ["PATH": "\(directory["programs"].string):/usr/bin:/bin", "SECRET": "x"],
            pauseAfterTrial: pauseAfterTrial, logger: logger)
    }

    /// What a program has noted: a line for each start.
    func starts(_ name: String = "plain") -> [String] {
        let text = (try? String(contentsOfFile: directory[name].string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// The cache of a user who has nothing else in it.
    func cache() throws -> ThumbnailCache {
        try #require(ThumbnailCache(environment: ["XDG_CACHE_HOME": directory["cache"].string]))
    }

    /// Makes thumbnails of the files of a mount.
    ///
    /// - Parameter mountPoint: called when the path of a file is needed; nil for that of the mount.
    func maker(
        of mount: ProvidedMount, mountPoint: (@Sendable () -> FilePath?)? = nil
    ) throws -> ThumbnailMaker {
        let path = mount.path
        let usual: @Sendable () -> FilePath? = { path }
        return ThumbnailMaker(
            engine: mount.host.engine, database: mount.host.replica.database, cache: try cache(), scaler: scaler(),
            mountPoint: mountPoint ?? usual, announce: { _ in },
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }
}
