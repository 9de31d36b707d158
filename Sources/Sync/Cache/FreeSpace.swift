import FileProvider
import Syscalls
import SystemPackage

/// The free space of a file system, and how much of it is reserved for what was written here and is not on the remote.
struct FreeSpace: Hashable {
    private var available: Int64
    /// A fiftieth, at least 64 MiB and at most 1 GiB; of a small file system never more than a tenth.
    private var reserve: Int64

    init(available: Int64, reserve: Int64) {
        self.available = available
        self.reserve = reserve
    }

    init?(_ directory: FilePath) {
        guard let statistics = try? FileSystemStatistics(of: directory) else { return nil }
        let unit = Int64(clamping: statistics.blockSize)
        let total = Int64(clamping: statistics.blocks).multipliedReportingOverflow(by: unit).partialValue
        available = Int64(clamping: statistics.availableBlocks).multipliedReportingOverflow(by: unit).partialValue
        reserve = min(max(total / 50, 64 << 20), 1 << 30, total / 10)
    }

    /// How long a program needs to fill what is free beside the reserve, at a gigabyte a second.
    var timeToFill: Duration { .milliseconds(max(available.saturatingSubtract(reserve), 0) / 1_000_000) }

    /// How many bytes are missing for so many more.
    ///
    /// - Parameter isBackground: whether no process waits for them: then as much again is left to those that do.
    func shortage(of bytes: Int64, isBackground: Bool = false) -> Int64 {
        bytes.saturatingSubtract(available.saturatingSubtract(isBackground ? 2 * reserve : reserve))
    }
}
