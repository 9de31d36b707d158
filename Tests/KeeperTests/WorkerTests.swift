import Foundation
import Testing

@testable import Keeper

@Suite struct Workers {
    /// Names threads with prctl(PR_SET_NAME).
    private static let script = """
        import ctypes, sys, threading, time
        def run(name):
            ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
            time.sleep(60)
        for name in sys.argv[1:]:
            threading.Thread(target=run, args=(name,), daemon=True).start()
        time.sleep(60)
        """

    /// The names of a process's threads but its main thread.
    private func threads(of process: Int32) -> [String] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.filter { $0 != "\(process)" }.compactMap { task in
            let name = try? String(contentsOfFile: "/proc/\(process)/task/\(task)/comm", encoding: .utf8)
            return name?.trimmingCharacters(in: .newlines)
        }.sorted()
    }

    @Test(
        "a worker of which only threads are left that wait for its mount is held up by that",
        arguments: [["fuse-events"], ["fuse-events", "fuse-notify"], ["fuse-0", "fuse-events"]])
    func heldUp(names: [String]) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", Self.script] + names
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let number = process.processIdentifier
        for _ in 0..<1500 where threads(of: number) != names { try await Task.sleep(for: .milliseconds(10)) }
        #expect(threads(of: number) == names)
        #expect(Worker(process: number).isHeldUpByItsMount == !names.contains("fuse-0"))
    }
}
