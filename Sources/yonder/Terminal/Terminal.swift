import Glibc
import Syscalls
import SystemPackage

enum Terminal {
    static var isStandardInput: Bool { isatty(STDIN_FILENO) == 1 }
    static var isStandardOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }

    /// The width of the terminal of standard error; 80 where it is unknown.
    static var columns: Int { FileDescriptor.standardError.columns ?? 80 }
}
