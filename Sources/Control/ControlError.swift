/// Why a command was not done.
package struct ControlError: Error, Codable, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Codable, Hashable, Sendable, CaseIterable {
        /// Some of it was refused, or it failed.
        case failed
        case usage
        /// No daemon, or the domain is not mounted.
        case unavailable
        case timeout
        case notPermitted
        /// A daemon runs already.
        case alreadyRunning
        /// Client and daemon do not speak the same version.
        case version
    }

    package var code: Code
    /// What is wrong, and what to do.
    package var message: String
    /// The path it is about.
    package var path: String?

    package init(_ code: Code, _ message: String, path: String? = nil) {
        self.code = code
        self.message = message
        self.path = path
    }

    package var description: String { path.map { "\($0): \(message)" } ?? message }
}

extension ControlError.Code {
    /// What the command line ends with.
    package var exitStatus: Int32 {
        switch self {
        case .failed: 1
        case .usage: 64
        case .unavailable, .alreadyRunning, .version: 69
        case .timeout: 75
        case .notPermitted: 77
        }
    }
}
