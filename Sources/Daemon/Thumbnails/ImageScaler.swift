import Foundation
import Syscalls
import SystemPackage

/// Makes small PNG images of images in any format, by `gdk-pixbuf-thumbnailer`: the image comes from the remote, so it is decoded in
/// another process, which has little time and memory.
struct ImageScaler: Sendable {
    /// Holds the files of an image while it is scaled.
    let directory: FilePath
    let environment: [String: String]

    static let program = "gdk-pixbuf-thumbnailer"
    private static let limits = ["--cpu=10", "--as=1073741824", "--fsize=16777216", "--core=0"]
    private static let patience = Duration.seconds(20)

    /// The image does not exist, or is of no format that the program reads.
    struct Unreadable: Error {
        var reason: String
    }

    /// The program was killed, for example at a limit, or not found.
    struct Failure: Error {
        var end: ChildProcess.End
    }

    /// Whether the program is installed.
    var isAvailable: Bool {
        (environment["PATH"] ?? "").split(separator: ":").contains { folder in
            (try? FileStatus(at: FilePath(String(folder)).appending(Self.program))) != nil
        }
    }

    /// The program decodes what a server has sent: it gets no secret.
    private static func isPassedOn(_ variable: String) -> Bool {
        ["HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "XDG_DATA_DIRS"].contains(variable)
            || variable.hasPrefix("GDK_PIXBUF_")
    }

    /// Removes what an interrupted process has left.
    func clear() {
        try? FileManager.default.removeItem(atPath: directory.string)
    }

    /// - Returns: images with the given lengths of the longer side, in this order. Each is made of the one before.
    /// - Throws: ``Unreadable``; errors of the disk; `CancellationError`.
    func scale(_ image: [UInt8], to lengths: [Int]) async throws -> [PNGFile] {
        let folder = directory.appending(String(UInt64.random(in: 0...UInt64.max), radix: 36))
        try folder.makeDirectories(permissions: .ownerReadWriteExecute)
        let (input, output) = (folder.appending("in"), folder.appending("out"))
        defer {
            try? input.unlinkIfPresent()
            try? output.unlinkIfPresent()
            try? folder.removeDirectory()
        }
        var source = image
        var images: [PNGFile] = []
        for length in lengths {
            try input.unlinkIfPresent()
            let file = try FileDescriptor.open(
                input, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
            _ = try file.closeAfter { try file.writeAll(source) }
            let launch = ChildProcess.Launch(
                "prlimit", Self.limits + [Self.program, "-s", String(length), input.string, output.string],
                environment: environment.filter { Self.isPassedOn($0.key) })
            let (end, errors) = try await ChildProcess.run(launch, reading: .errors, within: Self.patience)
            guard [.exited(0), .exited(1)].contains(end) else { throw Failure(end: end) }
            guard end == .exited(0), let scaled = PNGFile(try output.contents()) else {
                throw Unreadable(reason: "\(end): \(String(decoding: errors.suffix(300), as: UTF8.self))")
            }
            images.append(scaled)
            source = scaled.bytes
        }
        return images
    }
}
