import Dispatch
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Files through which contents go to a program and come from it, in a directory that only this user can access.
final class TransferFiles: Sendable {
    let directory: FilePath
    private let count = Mutex(0)
    private let queue = DispatchQueue(label: "yonder.program.files", attributes: .concurrent)

    /// - Parameter directory: exists. Files of an earlier daemon are replaced.
    init(in directory: FilePath) {
        self.directory = directory
    }

    /// Calls a closure with a new empty file, and removes the file afterwards.
    func with<Value: Sendable>(
        _ body: (_ path: String, FileDescriptor) async throws -> Value
    ) async throws -> Value {
        let number = count.withLock { count in
            count += 1
            return count
        }
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

    /// Runs a body that blocks on the disk on a Dispatch thread.
    func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
