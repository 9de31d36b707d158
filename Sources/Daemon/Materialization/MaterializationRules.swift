/// Which processes may not have anything fetched: programs by name or path, and services by their systemd unit.
package struct MaterializationRules: Hashable, Sendable {
    /// Programs: a name, or a path when it begins with a slash. `*` stands for anything.
    package var programs: [String]
    /// Units, such as `tracker-*.service`.
    package var units: [String]
    /// Programs and units that may all the same.
    package var exceptions: [String]

    package init(programs: [String] = [], units: [String] = [], exceptions: [String] = []) {
        self.programs = programs
        self.units = units
        self.exceptions = exceptions
    }

    /// Those that read everything there is, unasked.
    package static let usual = MaterializationRules(
        programs: [
            // Indexers.
            "baloo_file", "baloo_file_extractor", "baloo_filemetadata_temp_extractor", "localsearch-*", "recollindex",
            "tracker-extract*", "tracker-miner-*", "updatedb", "updatedb.*", "zeitgeist-fts",
            // Thumbnailers.
            "*-thumbnailer", "*-thumbnailer.*", "ffmpegthumbnailer", "gnome-thumbnail-font", "tumblerd",
            // Virus scanners.
            "chkrootkit", "clamd", "clamdscan", "clamonacc", "clamscan", "rkhunter", "savd", "savscan",
            // Backup tools.
            "backintime", "bacula-fd", "bareos-fd", "borg", "borgmatic", "deja-dup", "deja-dup-monitor", "duplicati",
            "duplicity", "kopia", "rdiff-backup", "restic", "rsnapshot", "timeshift",
        ],
        units: [
            "borgmatic*.service", "clamav-*.service", "localsearch*.service", "mlocate*.service", "plocate*.service",
            "recollindex.service", "restic*.service", "tracker-*.service", "tumblerd.service", "updatedb.service",
        ])

    /// Why a process may not; nil for one that may.
    ///
    /// - Parameters:
    ///   - executable: the path of its program.
    ///   - name: what it is called.
    ///   - controlGroup: the path of its control group; its unit is one of the components.
    func refusal(executable: String?, name: String?, controlGroup: String?) -> String? {
        let file = executable?.split(separator: "/").last.map(String.init)
        func matches(_ patterns: [String]) -> String? {
            patterns.first { pattern in
                pattern.utf8.first == UInt8(ascii: "/")
                    ? executable.map { Self.matches($0, pattern) } == true
                    : [file, name].contains { $0.map { Self.matches($0, pattern) } == true }
            }
        }
        let components = controlGroup?.split(separator: "/").map(String.init) ?? []
        func unit(_ patterns: [String]) -> String? {
            patterns.first { pattern in components.contains { Self.matches($0, pattern) } }
        }
        if matches(exceptions) != nil || unit(exceptions) != nil { return nil }
        if let pattern = matches(programs) { return "'\(pattern)' is on the list of programs that may not" }
        if let pattern = unit(units) { return "'\(pattern)' is on the list of units that may not" }
        return nil
    }

    /// Whether a text fits a pattern, in which `*` stands for any bytes.
    static func matches(_ text: String, _ pattern: String) -> Bool {
        let (text, pattern) = (Array(text.utf8), Array(pattern.utf8))
        var (at, from) = (0, 0)
        // Where the last star was, and how far it reaches.
        var star: Int?
        var reach = 0
        while at < text.count {
            if from < pattern.count, pattern[from] == UInt8(ascii: "*") {
                (star, reach) = (from, at)
                from += 1
            } else if from < pattern.count, pattern[from] == text[at] {
                (at, from) = (at + 1, from + 1)
            } else if let last = star {
                reach += 1
                (at, from) = (reach, last + 1)
            } else {
                return false
            }
        }
        return pattern[from...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
