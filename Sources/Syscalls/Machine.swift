import CSyscalls
import FileNames
import Foundation
import Glibc
import SystemPackage

/// What Yonder asks of the machine it runs on.
package enum Machine {
    /// A text that is another one after each boot; empty where the kernel does not tell.
    package static var bootIdentifier: String {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }

    /// The words of this process's command line after its name, as ``FileNameText`` has them: they may be file names.
    package static var arguments: [String] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { word in
                FileNameText.text(of: UnsafeRawBufferPointer(start: word, count: strlen(word)))
            }
        }
    }

    /// The path of the current directory, as ``FileNameText`` has it. (getcwd)
    package static var currentDirectory: String {
        guard let path = getcwd(nil, 0) else { return "/" }
        defer { free(path) }
        return FileNameText.text(of: UnsafeRawBufferPointer(start: path, count: strlen(path)))
    }

    package static var userIdentifier: UInt32 { geteuid() }
    package static var groupIdentifier: UInt32 { getegid() }

    /// The machine's own name.
    package static var hostName: String { ProcessInfo.processInfo.hostName }

    /// Lets this process have as many files open as it may ask for. (setrlimit)
    package static func raiseFileLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Keeps the kernel from writing this process's memory into a core dump, and other processes of the user from reading
    /// it. The kernel then gives most files in /proc/PID to root. (prctl with PR_SET_DUMPABLE)
    package static func forbidCoreDumps() throws(Errno) {
        guard yonder_forbid_core_dumps() == 0 else { throw Errno.current }
    }

    /// Removes the environment variables that are not wanted. Call it before other threads run: `setenv` and `getenv`
    /// are not safe beside each other. (unsetenv)
    package static func removeEnvironmentVariables(except isKept: (String) -> Bool) {
        for name in ProcessInfo.processInfo.environment.keys where !isKept(name) { unsetenv(name) }
    }

    /// Makes this process a session of its own, so that no terminal's end is its end. (setsid)
    package static func leaveTerminal() {
        setsid()
    }
}

/// What processes inherit, whatever they do.
extension Machine {
    /// The limit that marks a process, and all that come from it, as one for which nothing is fetched.
    ///
    /// It is a limit on something that Linux has not limited since 2.4, so that it changes nothing else. It is inherited
    /// over fork, exec and setsid, can be read in /proc by anybody, and taken off by nobody but root.
    package static let materializationMark: UInt64 = 0x796F_6E64_6572

    /// Marks this process. (setrlimit)
    package static func markAgainstMaterialization() throws(Errno) {
        var limit = rlimit(rlim_cur: rlim_t(materializationMark), rlim_max: rlim_t(materializationMark))
        guard setrlimit(__rlimit_resource_t(__RLIMIT_LOCKS.rawValue), &limit) == 0 else { throw Errno.current }
    }

    /// Becomes another program, looked for in PATH, with arguments as ``FileNameText`` has them, and with signals as a program expects them. Returns only when it
    /// cannot. (execvp)
    package static func become(_ arguments: [String]) -> Errno {
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        signal(SIGPIPE, SIG_DFL)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup(cName($0)) }
        words.append(nil)
        defer { for word in words { free(word) } }
        guard let program = words[0] else { return .invalidArgument }
        execvp(program, words)
        return Errno.current
    }
}
