import SystemPackage

package struct ControlError: Error, Codable, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Codable, Hashable, Sendable, CaseIterable {
        /// The command failed, completely or for some items.
        case failed
        /// The remote rejects the credentials, or requires some.
        case notAuthenticated
        case usage
        /// No daemon runs, or the domain is not mounted.
        case unavailable
        case timeout
        case notPermitted
        /// Another daemon runs.
        case alreadyRunning
        /// The connection broke: the command may have been executed, or not.
        case interrupted
        /// Client and daemon have different protocol versions, or different messages.
        case version
    }

    package var code: Code
    /// What is wrong, and what to do.
    package var message: String
    package var path: String?
    /// The code of a refusal of the item at ``path``, such as `noSuchItem`. Nil: ``code``; also from an older daemon.
    package var itemCode: String?

    package init(_ code: Code, _ message: String, path: String? = nil, itemCode: String? = nil) {
        self.code = code
        self.message = message
        self.path = path
        self.itemCode = itemCode
    }

    package var description: String { path.map { "\($0): \(message)" } ?? message }
}

extension ControlError.Code {
    /// - Parameter error: of a system call: `notPermitted` where the file or directory may not be opened or made, as on a read-only
    ///   file system, below a file, and in /proc (ENOENT); else `failed`.
    package init(of error: any Error) {
        switch error as? Errno {
        case .permissionDenied, .notPermitted, .readOnlyFileSystem, .notDirectory, .noSuchFileOrDirectory:
            self = .notPermitted
        default: self = .failed
        }
    }

    package var exitStatus: Int32 {
        switch self {
        case .failed, .notAuthenticated: 1
        case .usage: 64
        case .unavailable, .alreadyRunning, .interrupted, .version: 69
        case .timeout: 75
        case .notPermitted: 77
        }
    }
}
