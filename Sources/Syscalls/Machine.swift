import CSyscalls
import FileNames
import Foundation
import Glibc
import SystemPackage

/// Properties of the machine and of this process.
package enum Machine {
    /// A text that changes with each boot; empty if the kernel does not provide it.
    package static var bootIdentifier: String {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }

    /// The arguments of this process without its name, encoded by ``FileNameText``.
    package static var arguments: [String] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { word in
                FileNameText.text(of: UnsafeRawBufferPointer(start: word, count: strlen(word)))
            }
        }
    }

    /// The last component of the path by which this process was started; empty if there is none.
    package static var programName: String {
        guard CommandLine.argc > 0, let word = CommandLine.unsafeArgv[0] else { return "" }
        let path = FileNameText.text(of: UnsafeRawBufferPointer(start: word, count: strlen(word)))
        return path.split(separator: "/").last.map(String.init) ?? ""
    }

    /// The current directory, encoded by ``FileNameText``; nil if it was removed, or is in no directory that can be reached. (getcwd)
    package static var currentDirectory: String? {
        guard let path = getcwd(nil, 0) else { return nil }
        defer { free(path) }
        let text = FileNameText.text(of: UnsafeRawBufferPointer(start: path, count: strlen(path)))
        // The kernel calls the other ones "(unreachable)".
        return text.utf8.first == UInt8(ascii: "/") ? text : nil
    }

    package static var userIdentifier: UInt32 { geteuid() }
    package static var groupIdentifier: UInt32 { getegid() }

    /// The user's home directory as the system's database of users has it. (getpwuid_r)
    package static var homeDirectory: String? {
        var buffer = [CChar](repeating: 0, count: 1 << 14)
        var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
        guard getpwuid_r(geteuid(), &entry, &buffer, buffer.count, &found) == 0, found != nil, let home = entry.pw_dir,
            home.pointee != 0
        else { return nil }
        return FileNameText.text(of: UnsafeRawBufferPointer(start: home, count: strlen(home)))
    }

    /// The process that has started this one, or that has adopted it.
    package static var parentProcess: Int32 { getppid() }

    /// Ends all processes of a group at once that this process may end (kill(2)).
    package static func killGroup(_ group: Int32) {
        if group > 1 { _ = kill(-group, SIGKILL) }
    }

    package static var hostName: String { ProcessInfo.processInfo.hostName }

    /// Raises the limit of open files to its maximum. (setrlimit)
    package static func raiseFileLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Makes the process not dumpable: the kernel writes no core dump, and processes of the same user cannot read its
    /// memory. Most files in /proc/PID then belong to root. (prctl with PR_SET_DUMPABLE)
    package static func forbidCoreDumps() throws(Errno) {
        guard yonder_forbid_core_dumps() == 0 else { throw Errno.current }
    }

    /// Sets an environment variable to a text encoded by ``FileNameText``. As for ``removeEnvironmentVariables(except:)``, no other
    /// threads may run yet. (setenv)
    package static func setEnvironmentVariable(_ name: String, to value: String) {
        setenv(name, cName(value), 1)
    }

    /// Removes environment variables. Must be called before other threads run, because `setenv` and `getenv` are not
    /// thread-safe. (unsetenv)
    package static func removeEnvironmentVariables(except isKept: (String) -> Bool) {
        for name in ProcessInfo.processInfo.environment.keys where !isKept(name) { unsetenv(name) }
    }

    /// Starts a new session, so that the process survives its terminal. (setsid)
    package static func leaveTerminal() {
        setsid()
    }
}

/// A mark that processes inherit.
extension Machine {
    /// The resource limit that marks a process and its descendants as not allowed to materialize.
    ///
    /// Linux has not enforced this limit since 2.4, so it changes nothing else. It is inherited over fork, exec and
    /// setsid, is visible in /proc to every user, and only root can remove it.
    package static let materializationMark: UInt64 = 0x796F_6E64_6572

    /// Marks this process. (setrlimit)
    package static func markAgainstMaterialization() throws(Errno) {
        var limit = rlimit(rlim_cur: rlim_t(materializationMark), rlim_max: rlim_t(materializationMark))
        guard setrlimit(__rlimit_resource_t(__RLIMIT_LOCKS.rawValue), &limit) == 0 else { throw Errno.current }
    }

    /// Executes another program, found in PATH, with arguments encoded by ``FileNameText`` and default signal
    /// handling. Returns only after an error. (execvp)
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
