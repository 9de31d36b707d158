import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// Makes small PNG images of JPEG, PNG, WebP and GIF images, by `gdk-pixbuf-thumbnailer`: the image comes from the remote, so it is
/// decoded in another process, which has little time and memory. Where `bwrap` (bubblewrap) works, that process has no network either,
/// and sees no more of the machine than its programs and libraries.
final class ImageScaler: Sendable {
    /// Holds the files of an image while it is scaled.
    private let directory: FilePath
    private let environment: [String: String]
    /// How the last trial of `bwrap` has ended; nil before the first.
    private let trial = Mutex<Trial?>(nil)
    private let pauseAfterTrial: Duration
    private let logger: Logger

    private enum Trial {
        case works
        case failed(reason: String, until: ContinuousClock.Instant)
    }

    static let program = "gdk-pixbuf-thumbnailer"
    /// What the program sees and may do in the sandbox: no network, no other process, nothing of the user's files, and what it sees of
    /// the machine it cannot change. (bwrap(1))
    private static let sandbox: [String] = [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/bin", "/bin", "--ro-bind-try", "/lib", "/lib",
        "--ro-bind-try", "/lib32", "/lib32", "--ro-bind-try", "/lib64", "/lib64",
        "--ro-bind-try", "/etc/alternatives", "/etc/alternatives",
        "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
        "--ro-bind-try", "/gnu/store", "/gnu/store", "--ro-bind-try", "/nix/store", "/nix/store",
        "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp", "--chdir", "/",
    ]
    private static let limits = ["--cpu=10", "--as=1073741824", "--fsize=16777216", "--core=0"]
    private static let patience = Duration.seconds(20)

    /// The image does not exist, or is of no format that is accepted or that the program reads.
    struct Unreadable: Error {
        var reason: String
    }

    /// The program was killed, for example at a limit, or not found.
    struct Failure: Error {
        var end: ChildProcess.End
        /// The end of its standard error.
        var errors: String

        var wasKilled: Bool { end.exitStatus > 128 }
    }

    /// The trial of the sandbox was killed or did not end: that says nothing of the image, nor of the sandbox.
    struct TrialFailure: Error {
        var reason: String
    }

    /// - Parameter pauseAfterTrial: how long images are scaled without a sandbox after a trial of an installed `bwrap` has failed.
    init(
        directory: FilePath, environment: [String: String], pauseAfterTrial: Duration = .seconds(600), logger: Logger
    ) {
        self.directory = directory
        self.environment = environment
        self.pauseAfterTrial = pauseAfterTrial
        self.logger = logger
    }

    var isAvailable: Bool { isInstalled(Self.program) }

    private func isInstalled(_ program: String) -> Bool {
        (environment["PATH"] ?? "").split(separator: ":").contains { folder in
            (try? FileStatus(at: FilePath(String(folder)).appending(program))) != nil
        }
    }

    /// The program decodes what a server has sent: it gets no secret.
    private static func isPassedOn(_ variable: String) -> Bool {
        ["HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "XDG_DATA_DIRS"].contains(variable)
            || variable.hasPrefix("GDK_PIXBUF_")
    }

    /// The library has a loader for each of many formats, and an administrator may have added others: a server does not choose among
    /// them. The first bytes decide in the library, too.
    private static func isAccepted(_ image: [UInt8]) -> Bool {
        let webP = image.starts(with: "RIFF".utf8) && image.dropFirst(8).starts(with: "WEBP".utf8)
        return webP || image.starts(with: [0xFF, 0xD8, 0xFF]) || PNGFile(image) != nil
            || image.starts(with: "GIF87a".utf8) || image.starts(with: "GIF89a".utf8)
    }

    /// Removes what an interrupted process has left.
    func clear() {
        try? FileManager.default.removeItem(atPath: directory.string)
    }

    /// - Returns: images with the given lengths of the longer side, in this order. Each is made of the one before.
    /// - Throws: ``Unreadable``; ``Failure``; ``TrialFailure``; errors of the disk; `CancellationError`.
    func scale(_ image: [UInt8], to lengths: [Int]) async throws -> [PNGFile] {
        guard Self.isAccepted(image) else { throw Unreadable(reason: "it is no JPEG, PNG, WebP or GIF image") }
        let isSandboxed = try await worksInSandbox()
        var source = image
        var images: [PNGFile] = []
        for length in lengths {
            let scaled = try await scale(source, to: length, isSandboxed: isSandboxed)
            images.append(scaled)
            source = scaled.bytes
        }
        return images
    }

    /// An image of one pixel.
    private static let sample: [UInt8] = [
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
        0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3A, 0x7E, 0x9B, 0x55, 0x00, 0x00, 0x00,
        0x0A, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x48, 0xAF, 0xA4,
        0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82,
    ]

    /// Whether an image is scaled in the sandbox here. A kernel or a container may forbid the namespaces, and the program may be
    /// installed where the sandbox does not show it.
    ///
    /// - Throws: what says nothing of the sandbox: it is tried again with the next image.
    private func worksInSandbox() async throws -> Bool {
        let last = trial.withLock { $0 }
        switch last {
        case .works?: return true
        case .failed(_, let until)? where ContinuousClock.now < until: return false
        case .failed?, nil: break
        }
        guard isInstalled("bwrap") else { return false }
        let reason: String
        do {
            _ = try await scale(Self.sample, to: 1, isSandboxed: true)
            trial.withLock { $0 = .works }
            return true
        } catch let error as Unreadable {
            reason = error.reason
        } catch let failure as Failure {
            if failure.wasKilled { throw TrialFailure(reason: "\(failure.end)") }
            reason = "\(failure.end): \(failure.errors)"
        } catch ChildProcess.RunError.timedOut {
            throw TrialFailure(reason: "it did not end in time")
        }
        var isKnown = false
        if case .failed(let before, _)? = last { isKnown = before == reason }
        logger.log(
            level: isKnown ? .debug : .notice, "images are decoded without a sandbox, because bwrap fails: \(reason)")
        trial.withLock { $0 = .failed(reason: reason, until: ContinuousClock.now + pauseAfterTrial) }
        return false
    }

    private func scale(_ image: [UInt8], to length: Int, isSandboxed: Bool) async throws -> PNGFile {
        let folder = directory.appending(String(UInt64.random(in: 0...UInt64.max), radix: 36))
        try folder.makeDirectories(permissions: .ownerReadWriteExecute)
        let (input, output) = (folder.appending("in"), folder.appending("out"))
        defer {
            try? input.unlinkIfPresent()
            try? output.unlinkIfPresent()
            try? folder.removeDirectory()
        }
        let file = try FileDescriptor.open(
            input, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        _ = try file.closeAfter { try file.writeAll(image) }
        // Stays open: the program cannot give another file in its place.
        let scaled = try FileDescriptor.open(
            output, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        defer { try? scaled.close() }
        var command = Self.limits
        if isSandboxed {
            command += Self.sandbox
            command += ["--ro-bind", input.string, "/in", "--bind", output.string, "/out"]
            command += [Self.program, "-s", String(length), "/in", "/out"]
        } else {
            command += [Self.program, "-s", String(length), input.string, output.string]
        }
        let launch = ChildProcess.Launch(
            "prlimit", command, environment: environment.filter { Self.isPassedOn($0.key) })
        let (end, errors) = try await ChildProcess.run(launch, reading: .errors, within: Self.patience)
        let message = String(decoding: errors.suffix(300), as: UTF8.self)
        guard [.exited(0), .exited(1)].contains(end) else { throw Failure(end: end, errors: message) }
        let bytes = try scaled.readBytes(at: 0, count: Int(try scaled.lengths().size))
        guard end == .exited(0), let image = PNGFile(bytes) else {
            throw Unreadable(reason: "\(end): \(message)")
        }
        return image
    }
}
