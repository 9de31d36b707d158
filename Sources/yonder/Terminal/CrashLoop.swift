import Control
import Foundation
import Syscalls

/// A daemon that crashes again and again, as the keeper reports it.
struct CrashLoop {
    let description: String

    /// - Returns: nil if no keeper waits to start the daemon.
    init?(in places: Places) {
        guard let text = try? String(contentsOfFile: places.crashLoop, encoding: .utf8) else { return nil }
        var values: [Substring: Substring] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1)
            if parts.count == 2 { values[parts[0]] = parts[1] }
        }
        guard let keeper = values["keeper"].flatMap({ Int32($0) }), let crashes = values["crashes"],
            let end = values["end"], let next = values["next"].flatMap({ Double($0) }),
            // A keeper that was killed leaves its report, and another process may have its number.
            ProcessStatus.value("Name", of: keeper) == "yonder-keeper"
        else { return nil }
        let rest = max(0, Int(next - Date().timeIntervalSince1970))
        let report = Self.newestReport(in: places.crashes).map { "the report is '\($0)', " } ?? ""
        description =
            "the daemon has crashed \(crashes) times in a row, last with \(end), and is started again in \(rest) s; "
            + "calls that need it fail with EIO; \(report)the log is '\(places.log)'"
    }

    private static func newestReport(in directory: String) -> String? {
        let files = FileManager.default
        let reports = ((try? files.contentsOfDirectory(atPath: directory)) ?? []).map { directory + "/" + $0 }
        func date(_ path: String) -> Date {
            (try? files.attributesOfItem(atPath: path)[.modificationDate] as? Date) ?? .distantPast
        }
        return reports.max { date($0) < date($1) }
    }
}
