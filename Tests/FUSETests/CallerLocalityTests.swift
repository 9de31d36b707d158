import FUSE
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Where the threads that answer run.
@Suite(.tags(.mount, .timing), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct CallerLocalityTests {
    /// On how many processors each of the threads of this process that answer the kernel may run.
    private func allowedProcessors() throws -> [Int] {
        let tasks = "/proc/self/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { task in
            // A thread may end while it is looked at.
            guard let name = try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8),
                name.hasPrefix("fuse-"), name.dropFirst(5).first?.isNumber == true,
                let status = try? String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8),
                let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") })
            else { return nil }
            return line.split(separator: "\t").last?.reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        }
    }

    @Test(
        "WRITE-9: requests of a single caller are answered on its processor, until a second caller appears",
        .enabled(if: ProcessInfo.processInfo.activeProcessorCount > 1, "there is one processor only"))
    func followsALoneCaller() async throws {
        try await Mounted.run { mount async throws in
            #expect(await eventually { (try? allowedProcessors().count) == 4 })
            let usual = try allowedProcessors()
            #expect(usual.allSatisfy { $0 > 1 })
            let stop = mount.directory.path.appending("stop").string
            async let asking = Command.shell(
                #"i=0; until [ -e "$2" ]; do [ -e "$1/no-$i" ]; i=$((i + 1)); done"#, mount.path.string, stop)
            #expect(await eventually { (try? allowedProcessors()) == [1, 1, 1, 1] })
            #expect(FileManager.default.createFile(atPath: stop, contents: nil))
            _ = try await asking
            // A second caller appears.
            _ = try await Command.shell(#"ls "$1""#, mount.path.string)
            #expect(try allowedProcessors() == usual)
        }
    }
}
