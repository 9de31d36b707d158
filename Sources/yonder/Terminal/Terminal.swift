import Glibc

/// Properties of the terminal.
enum Terminal {
    static var isStandardInput: Bool { isatty(STDIN_FILENO) == 1 }
    static var isStandardOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}
