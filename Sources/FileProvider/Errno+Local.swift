import SystemPackage

extension Errno {
    /// Whether this machine, and not the remote, has run out of something: file descriptors (EMFILE, ENFILE), memory (ENOMEM)
    /// or buffers (ENOBUFS).
    package var isShortageHere: Bool {
        [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace].contains(self)
    }
}

extension FileProviderError {
    /// This machine has run out of something that a call needs. It passes, and says nothing of the remote.
    ///
    /// - Parameter errno: for which ``Errno/isShortageHere`` holds.
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
