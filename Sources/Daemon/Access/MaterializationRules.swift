import Replica

/// The processes that may not cause fetches: programs by name or path, and services by systemd unit.
package struct MaterializationRules: Hashable, Sendable {
    /// Program names, or paths if they begin with a slash. `*` matches any text. `PROGRAM/THREAD` is for the threads of a name.
    package var programs: [String] = []
    /// Programs, in the same way, that read a file only to show it small.
    package var thumbnailers: [String] = []
    /// Unit names, for example `tracker-*.service`.
    package var units: [String] = []
    /// Programs and units that may cause fetches although another rule forbids it.
    package var exceptions: [String] = []

    /// Programs that read every file without a request by the user.
    package static let usual = MaterializationRules(
        programs: [
            // Indexers.
            "baloo_file", "baloo_file_extractor", "baloo_filemetadata_temp_extractor", "localsearch-*", "recollindex",
            "tracker-extract*", "tracker-miner-*", "updatedb", "updatedb.*", "zeitgeist-fts",
            // Virus scanners.
            "chkrootkit", "clamd", "clamdscan", "clamonacc", "clamscan", "rkhunter", "savd", "savscan",
            // Backup tools.
            "backintime", "bacula-fd", "bareos-fd", "borg", "borgmatic", "deja-dup", "deja-dup-monitor", "duplicati",
            "duplicity", "kopia", "rdiff-backup", "restic", "rsnapshot", "timeshift",
        ],
        // PCManFM reads pictures in a thread of its own; it copies files in others.
        thumbnailers: [
            "*-thumbnailer", "*-thumbnailer.*", "ffmpegthumbnailer", "gnome-thumbnail-font", "pcmanfm/loader",
            "tumblerd",
        ],
        units: [
            "borgmatic*.service", "clamav-*.service", "localsearch*.service", "mlocate*.service", "plocate*.service",
            "recollindex.service", "restic*.service", "tracker-*.service", "tumblerd.service", "updatedb.service",
        ])

    /// Why a process may not cause fetches.
    struct Refusal: Hashable, Sendable {
        /// In words.
        var reason: String
        /// It wants to show the file small.
        var isOfThumbnailer = false
    }

    /// A process, as rules name it.
    struct Subject: Sendable {
        /// The path of its program.
        var executable: String?
        /// Its name in /proc/PID/comm, and that of the thread.
        var name, thread: String?
        /// The path of its control group, which contains the unit.
        var controlGroup: String?
    }

    /// The reason why a process may not cause fetches; nil if it may.
    func refusal(of process: Subject) -> Refusal? {
        if isException(process) { return nil }
        for (patterns, isOfThumbnailer) in [(thumbnailers, true), (programs, false)] {
            if let pattern = Self.program(in: patterns, process) {
                return Refusal(
                    reason: "'\(pattern)' is on the list of programs that may not", isOfThumbnailer: isOfThumbnailer)
            }
        }
        if let pattern = Self.unit(in: units, process) {
            return Refusal(reason: "'\(pattern)' is on the list of units that may not")
        }
        return nil
    }

    /// Whether an exception is for some threads of a program only.
    var haveThreadExceptions: Bool {
        exceptions.contains { $0.utf8.contains(UInt8(ascii: "/")) && $0.utf8.first != UInt8(ascii: "/") }
    }

    func isException(_ process: Subject) -> Bool {
        Self.program(in: exceptions, process) != nil || Self.unit(in: exceptions, process) != nil
    }

    private static func program(in patterns: [String], _ process: Subject) -> String? {
        let names = [process.executable?.split(separator: "/").last.map(String.init), process.name].compactMap(\.self)
        return patterns.first { pattern in
            if pattern.utf8.first == UInt8(ascii: "/") {
                return process.executable.map { NamePattern.matches($0, pattern) } == true
            }
            let parts = pattern.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard names.contains(where: { NamePattern.matches($0, parts[0]) }) else { return false }
            return parts.count == 1 || process.thread.map { NamePattern.matches($0, parts[1]) } == true
        }
    }

    private static func unit(in patterns: [String], _ process: Subject) -> String? {
        let components = process.controlGroup?.split(separator: "/").map(String.init) ?? []
        return patterns.first { pattern in components.contains { NamePattern.matches($0, pattern) } }
    }
}
