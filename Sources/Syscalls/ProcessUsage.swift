import Foundation
import Glibc

package struct ProcessUsage: Sendable {
    /// User and system time. (getrusage)
    package var processorSeconds: Double
    /// Nil where /proc cannot be read.
    package var residentBytes: Int?
    /// Nil where /proc cannot be read, as by an ordinary user's process that is not dumpable.
    package var openFiles: Int?

    package static var current: ProcessUsage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = [usage.ru_utime, usage.ru_stime].reduce(0.0) {
            $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6
        }
        // The second number is that of resident pages (proc(5)).
        let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = statm.flatMap { text in text.split(separator: " ").dropFirst().first.flatMap { Int($0) } }
        return ProcessUsage(
            processorSeconds: seconds, residentBytes: pages.map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) },
            openFiles: try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count)
    }
}
