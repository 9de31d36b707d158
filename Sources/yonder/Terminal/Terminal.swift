import Glibc

/// Properties of the terminal.
enum Terminal {
    static var isStandardOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}
