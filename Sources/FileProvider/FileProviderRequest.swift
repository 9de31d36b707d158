/// The origin of a call: why the system makes it, and for which process.
public struct FileProviderRequest: Hashable, Sendable {
    /// The reason of a call.
    public enum Reason: String, Hashable, Sendable, Codable {
        /// A process lists a directory.
        case listing
        /// A process looks a name up.
        case lookup
        /// A process reads a file.
        case reading
        /// A user requested a download by command or attribute.
        case download
        /// The system prefetches for a process.
        case lookAhead
        /// The system synchronizes the replica with the remote.
        case synchronization
    }

    /// Why the system makes the call.
    public var reason: Reason
    /// The process that waits for the answer; nil for a call of the system itself.
    public var processIdentifier: Int32?
    /// The user ID of that process.
    public var userIdentifier: UInt32?
    /// The path of that process's executable, if known.
    public var requestingExecutable: String?

    /// A request, by default of the system itself.
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
