/// In whose name a provider is asked.
public struct FileProviderRequest: Hashable, Sendable {
    /// Why the system asks.
    public enum Reason: String, Hashable, Sendable, Codable {
        /// A process lists a directory.
        case listing
        /// A process looks a name up.
        case lookup
        /// A process reads a file.
        case reading
        /// Somebody asked for a download by command or attribute.
        case download
        /// The system reads or lists ahead of a process.
        case lookAhead
        /// The system keeps replica and remote equal.
        case synchronization
    }

    public var reason: Reason
    /// The process that waits for the answer; `nil` when the system asks for itself.
    public var processIdentifier: Int32?
    public var userIdentifier: UInt32?
    /// The path of that process's executable, where it can be found out.
    public var requestingExecutable: String?

    public init(
        reason: Reason, processIdentifier: Int32? = nil, userIdentifier: UInt32? = nil,
        requestingExecutable: String? = nil
    ) {
        self.reason = reason
        self.processIdentifier = processIdentifier
        self.userIdentifier = userIdentifier
        self.requestingExecutable = requestingExecutable
    }

    /// Whether no process waits for the answer.
    public var isSystemRequest: Bool { processIdentifier == nil }
}
