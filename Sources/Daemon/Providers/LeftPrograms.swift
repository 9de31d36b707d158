import Foundation
import Syscalls

/// Programs of remotes (ssh, rclone, providers) that a daemon has started and that go on although it was killed together with its
/// keeper, which ends them otherwise. One that is busy with a change would make it after newer ones.
enum LeftPrograms {
    /// In the environment of each program of a remote: the state directory of the daemon that has started it.
    static let variable = "YONDER_STARTED_BY"

    /// Kills the process groups that they lead, and waits until their leaders have ended, for two seconds at most. What has made a
    /// session of its own is meant to go on.
    ///
    /// - Precondition: the caller has locked the state directory and started no program.
    /// - Returns: how many groups were killed.
    static func kill(of stateDirectory: String) async -> Int {
        let mark = Array("\(variable)=\(stateDirectory)".utf8)
        let found = ObservedProcess.all().filter { process in
            process.group == process.identity.process && process.session != process.identity.process
                && process.environment.split(separator: 0).contains { $0.elementsEqual(mark) }
        }
        for process in found { Machine.killGroup(process.group) }
        let deadline = ContinuousClock.now + .seconds(2)
        for process in found {
            while ObservedProcess(process.group)?.isRunning(as: process) == true, ContinuousClock.now < deadline {
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
        return found.count
    }
}
