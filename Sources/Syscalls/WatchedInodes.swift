import SystemPackage

/// The inodes of a file system that programs watch by inotify or fanotify (proc_pid_fdinfo(5)). Root sees the watches of all
/// processes, another user those of their own.
package struct WatchedInodes: Sendable {
    /// Files and directories that are watched one by one.
    package private(set) var numbers: Set<UInt64> = []
    /// Whether a program watches the whole file system, or a mount, which may be this one.
    package private(set) var includesAll = false

    package var isEmpty: Bool { numbers.isEmpty && !includesAll }

    package func contains(_ number: UInt64) -> Bool { includesAll || numbers.contains(number) }

    /// Looks at the descriptors of all processes. Takes milliseconds.
    ///
    /// - Parameter device: of the file system (``FileStatus/device``).
    package init(on device: UInt64) {
        for process in Self.names(in: "/proc") where process.first.map({ $0 >= 48 && $0 <= 57 }) == true {
            let place = "/proc/" + String(decoding: process, as: UTF8.self)
            guard let descriptors = try? FileDescriptor.openDirectory(FilePath(place + "/fd")) else { continue }
            defer { try? descriptors.close() }
            for name in (try? descriptors.names()) ?? [] {
                let number = String(decoding: name, as: UTF8.self)
                guard let target = try? descriptors.linkTarget(named: number), Self.isWatch(target),
                    let text = try? FilePath("\(place)/fdinfo/\(number)").contents()
                else { continue }
                add(text, on: device)
            }
        }
    }

    /// The kernel's own form of a device number has the minor number in twenty bits.
    private static func device(_ number: UInt64) -> UInt64 {
        FileStatus.device(major: UInt32(truncatingIfNeeded: number >> 20), minor: UInt32(number & 0xF_FFFF))
    }

    private static func isWatch(_ target: [UInt8]) -> Bool {
        target.elementsEqual("anon_inode:inotify".utf8) || target.elementsEqual("anon_inode:[fanotify]".utf8)
    }

    private static func names(in directory: String) -> [[UInt8]] {
        guard let file = try? FileDescriptor.openDirectory(FilePath(directory)) else { return [] }
        defer { try? file.close() }
        return (try? file.names()) ?? []
    }

    /// Adds what a file of /proc/PID/fdinfo says: lines such as `inotify wd:1 ino:2c sdev:34 mask:4000002 ...`.
    private mutating func add(_ information: [UInt8], on device: UInt64) {
        for line in information.split(separator: UInt8(ascii: "\n")) {
            let fields = String(decoding: line, as: UTF8.self).split(separator: " ")
            guard let kind = fields.first, kind == "inotify" || kind == "fanotify" else { continue }
            var values: [Substring: UInt64] = [:]
            for field in fields.dropFirst() {
                let parts = field.split(separator: ":", maxSplits: 1)
                if parts.count == 2 { values[parts[0]] = UInt64(parts[1], radix: 16) }
            }
            if values["mnt_id"] != nil {
                includesAll = true
            } else if values["sdev"].map(Self.device) == device {
                if let number = values["ino"] { numbers.insert(number) } else { includesAll = true }
            }
        }
    }
}
