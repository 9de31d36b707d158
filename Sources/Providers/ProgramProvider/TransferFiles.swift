import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Files through which contents go to a program and come from it, in a directory that only this user can access.
package final class TransferFiles: Sendable {
    package let directory: FilePath
    private let count = Atomic<Int>(0)
    private static let copiedAtOnce = 1 << 20

    /// - Parameter directory: exists. Files of an earlier daemon are replaced.
    package init(in directory: FilePath) {
        self.directory = directory
    }

    /// Calls a closure with a new empty file, and removes the file afterwards.
    package func with<Value: Sendable>(
        _ body: (_ path: String, FileDescriptor) async throws -> Value
    ) async throws -> Value {
        let number = count.add(1, ordering: .relaxed).newValue
        let path = directory.appending("\(number)")
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(
                path, .readWrite, options: [.create, .truncate, .closeOnExec, .noFollow], permissions: .ownerReadWrite)
        } catch {
            throw FileProviderError.posix(error as? Errno ?? .ioError, "'\(path)' cannot be made: \(error)")
        }
        defer {
            try? file.close()
            try? path.unlinkIfPresent()
        }
        return try await body(path.string, file)
    }

    /// Calls a closure with a file that has a copy of some content, of one generation.
    ///
    /// - Parameter countsAsSent: whether the bytes are shown as sent when they are copied; else the closure reports them.
    package func withCopy<Value: Sendable>(
        of contents: ContentSource, countsAsSent: Bool = true, _ body: (_ path: String) async throws -> Value
    ) async throws -> Value {
        try await with { path, file in
            let source = countsAsSent ? contents : ContentSource(reading: contents)
            for start in stride(from: 0, to: contents.size, by: Self.copiedAtOnce) {
                // A large content that is not wanted any more is not copied on.
                try Task.checkCancellation()
                try await BlockingWork.run {
                    let bytes: [UInt8]
                    do { bytes = try source.read(at: start, count: Self.copiedAtOnce) } catch {
                        // That it was written meanwhile is more precise.
                        try contents.confirm()
                        throw error
                    }
                    do { try file.writeAll(toAbsoluteOffset: start, bytes) } catch let error as Errno {
                        throw FileProviderError.posix(error)
                    }
                    // The call makes progress.
                    if !countsAsSent { contents.advance(by: 0) }
                }
            }
            try await BlockingWork.run { try contents.confirm() }
            // The program sends it as fast as it likes: on average that is the rate that is allowed.
            try await contents.pace(contents.size)
            return try await body(path)
        }
    }
}
