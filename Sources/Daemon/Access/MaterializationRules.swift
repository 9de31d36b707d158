import Replica

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
        if isException(executable: executable, name: name, controlGroup: controlGroup) { return nil }
        if let pattern = Self.program(in: programs, executable: executable, name: name) {
            return "'\(pattern)' is on the list of programs that may not"
        }
        if let pattern = Self.unit(in: units, controlGroup: controlGroup) {
            return "'\(pattern)' is on the list of units that may not"
        }
        return nil
    }

    /// Whether a process is one of the exceptions.
    func isException(executable: String?, name: String?, controlGroup: String?) -> Bool {
        Self.program(in: exceptions, executable: executable, name: name) != nil
            || Self.unit(in: exceptions, controlGroup: controlGroup) != nil
    }

    private static func program(in patterns: [String], executable: String?, name: String?) -> String? {
        let file = executable?.split(separator: "/").last.map(String.init)
        return patterns.first { pattern in
            pattern.utf8.first == UInt8(ascii: "/")
                ? executable.map { NamePattern.matches($0, pattern) } == true
                : [file, name].contains { $0.map { NamePattern.matches($0, pattern) } == true }
        }
    }

    private static func unit(in patterns: [String], controlGroup: String?) -> String? {
        let components = controlGroup?.split(separator: "/").map(String.init) ?? []
        return patterns.first { pattern in components.contains { NamePattern.matches($0, pattern) } }
    }
}
