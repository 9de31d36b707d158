import Foundation
import Logging

/// The backtraces of crashes, which Swift's runtime writes to a directory (SWIFT_BACKTRACE).
enum CrashReports {
    /// The number of reports that are kept.
    static let limit = 10

    /// Creates the directory and removes all but the latest reports.
    static func prepare(_ directory: String, logger: Logger) {
        let files = FileManager.default
        do {
            try files.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let reports = try files.contentsOfDirectory(atPath: directory).map { directory + "/" + $0 }
            let dates = try reports.map { report in
                (report, try files.attributesOfItem(atPath: report)[.modificationDate] as? Date ?? .distantPast)
            }
            for (report, _) in dates.sorted(by: { $0.1 > $1.1 }).dropFirst(limit) {
                try files.removeItem(atPath: report)
            }
        } catch {
            logger.warning("the crash reports in '\(directory)' cannot be limited: \(error)")
        }
    }
}
