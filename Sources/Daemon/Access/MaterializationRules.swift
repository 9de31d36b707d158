import Replica

/// The processes that may not cause fetches: programs by name or path, and services by systemd unit.
package struct MaterializationRules: Hashable, Sendable {
    /// Program names, or paths if they begin with a slash. `*` matches any text.
    package var programs: [String]
    /// Unit names, for example `tracker-*.service`.
    package var units: [String]
    /// Programs and units that may cause fetches although another rule forbids it.
    package var exceptions: [String]

    package init(programs: [String] = [], units: [String] = [], exceptions: [String] = []) {
        self.programs = programs
        self.units = units
        self.exceptions = exceptions
    }

    /// Programs that read every file without a request by the user.
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

    /// The reason why a process may not cause fetches; nil if it may.
    ///
    /// - Parameters:
    ///   - executable: the path of its program.
    ///   - name: its name in /proc/PID/comm.
    ///   - controlGroup: the path of its control group, which contains the unit.
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
