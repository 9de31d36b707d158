import FileProvider
import Foundation

/// Asks a mount something that its daemon has to answer. A process of its own asks: one that hangs cannot be ended.
enum MountProbe {
    enum Answer {
        case answers
        /// The connection has ended with its daemon (ENOTCONN).
        case isDead
        case fails
        case hangs
    }

    private static let patience = DispatchTimeInterval.seconds(10)

    static func ask(_ mountpoint: String) -> Answer {
        let process = Process()
        process.setProgram("stat", arguments: ["--file-system", "--", mountpoint])
        process.environment = ["LC_ALL": "C", "PATH": "/usr/bin:/bin"]
        process.standardOutput = FileHandle.nullDevice
        let errors = Pipe()
        process.standardError = errors
        let end = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in end.signal() }
        guard (try? process.run()) != nil else { return .fails }
        guard end.wait(timeout: .now() + patience) == .success else { return .hangs }
        guard process.terminationStatus != 0 else { return .answers }
        let text = String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self)
        return text.contains("not connected") ? .isDead : .fails
    }
}
