import SystemPackage

extension Errno {
    /// Whether this machine, and not the remote, has run out of a resource: file descriptors (EMFILE, ENFILE), memory
    /// (ENOMEM) or buffers (ENOBUFS).
    package var isShortageHere: Bool {
        [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace].contains(self)
    }
}

extension FileProviderError {
    /// An error for a resource shortage of this machine. It is transient and says nothing about the remote.
    ///
    /// - Parameter errno: an error with ``Errno/isShortageHere``.
    package static func shortageHere(_ errno: Errno) -> FileProviderError {
        let what =
            switch errno {
            case .tooManyOpenFiles: "the daemon has too many files open (see 'ulimit -n')"
            case .tooManyOpenFilesInSystem: "this machine has too many files open"
            default: "this machine is short of memory"
            }
        return .posix(errno, "\(what): \(errno)")
    }
}
