import Foundation

extension Process {
    /// Sets a program that runs for long, looked up in PATH unless it is a path, and its arguments.
    ///
    /// The threads that run tasks block all signals, which the program would inherit. Foundation learns of the end of a process by
    /// a descriptor that the process inherits: when a program closes it and goes on, as `ssh` does, Foundation waits for that
    /// program on the thread that watches all others. `timeout` keeps the descriptor open until the program has ended, and
    /// passes on signals and the status.
    package func setProgram(_ program: String, arguments: [String]) {
        executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.arguments = ["--default-signal", "timeout", "0", program] + arguments
    }
}
