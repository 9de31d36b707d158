import Control
import Foundation
import Syscalls

/// The processes of a running daemon: the one that answers, and its keeper.
struct DaemonProcesses {
    private let identifiers: [Int32]
    private static let patience = Duration.seconds(10)

    init(of places: Places) {
        let lock = try? String(contentsOfFile: places.stateDirectory + "/yonderd.lock", encoding: .utf8)
        let daemon = lock?.split(separator: "\n").first.flatMap { Int32($0) }
        let parent = daemon.flatMap { ProcessStatus.value("PPid", of: $0) }.flatMap { Int32($0) }
        let keeper = parent.flatMap { ProcessStatus.value("Name", of: $0) == "yonder-keeper" ? $0 : nil }
        identifiers = [daemon, keeper].compactMap(\.self)
    }

    /// Returns when they have ended, which closes their files: then the disk with the state can be unmounted.
    ///
    /// - Returns: false if one of them still runs after ten seconds.
    func waitForEnd() async -> Bool {
        let deadline = ContinuousClock.now + Self.patience
        while identifiers.contains(where: Self.isRunning) {
            guard ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(10))) != nil else {
                return false
            }
        }
        return true
    }

    /// Whether there is such a process, and it is no zombie.
    private static func isRunning(_ process: Int32) -> Bool {
        ProcessStatus.value("State", of: process).map { !$0.hasPrefix("Z") && !$0.hasPrefix("X") } ?? false
    }
}
