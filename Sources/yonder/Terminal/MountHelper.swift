/// Understands how mount(8) calls the helper of a type of file system, for `mount -t fuse.yonder SOURCE DIR -o OPTIONS` and for
/// lines of fstab: `mount.fuse.yonder SOURCE DIR [-sfnv] [-o OPTIONS] [-t TYPE] [-N NAMESPACE]`.
struct MountHelper {
    /// The name under which this program is the helper.
    static let name = "mount.fuse.yonder"

    struct Mistake: Error {
        let text: String
    }

    /// The arguments of `yonder`; nil when nothing is to be mounted (`mount -f`).
    static func arguments(_ words: [String]) throws(Mistake) -> [String]? {
        var places: [String] = []
        var options: [String] = []
        var isFake = false
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "-o": options += split(rest.popFirst() ?? "")
            case "-t": _ = rest.popFirst()
            case "-N": throw Mistake(text: "-N: other mount namespaces are not supported")
            case _ where word.hasPrefix("-") && word.count > 1 && word.dropFirst().allSatisfy("sfnv".contains):
                isFake = isFake || word.contains("f")
            case _ where word.hasPrefix("-"): throw Mistake(text: "there is no option '\(word)'")
            default: places.append(word)
            }
        }
        guard places.count == 2 else { throw Mistake(text: "give the source and the directory to mount on") }
        var flags: [String] = []
        for option in options {
            guard let flag = try flag(for: option) else { continue }
            // As with mount(8), the last of 'ro' and 'rw' counts: the options of a line and those of a command come together.
            flags.removeAll { $0 == flag || $0 == opposite(of: flag) }
            flags.append(flag)
        }
        // Behind the end of the options: a source may begin with a dash.
        return isFake ? nil : ["mount", "--quiet"] + flags + ["--"] + places
    }

    private static func opposite(of flag: String) -> String {
        flag.hasPrefix("--no-") ? "--" + flag.dropFirst(5) : "--no-" + flag.dropFirst(2)
    }

    /// The options between the commas. A value in double quotes may contain commas, as in mount(8).
    private static func split(_ text: String) -> [String] {
        var options = [""]
        var isQuoted = false
        for character in text {
            switch character {
            case "\"": isQuoted.toggle()
            case "," where !isQuoted: options.append("")
            default: options[options.count - 1].append(character)
            }
        }
        return options.filter { !$0.isEmpty }
    }

    /// Options of fstab that are for other programs, or say what is so anyway.
    private static let ignored: Set<String> = [
        "defaults", "auto", "noauto", "nofail", "_netdev", "nouser", "async", "exec", "atime", "noatime", "relatime",
        "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime", "diratime", "nodiratime", "iversion",
        "noiversion", "loud", "silent", "comment",
    ]

    /// The flag of `yonder mount` for an option; nil for one without an effect.
    private static func flag(for option: String) throws(Mistake) -> String? {
        let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        if name.hasPrefix("x-") || name.hasPrefix("X-") || ignored.contains(name) { return nil }
        switch name {
        case "ro": return "--read-only"
        case "rw": return "--no-read-only"
        case "nosuid", "nodev": return "--no-" + name.dropFirst(2)
        case "user", "users", "owner", "group", "noexec", "sync", "dirsync", "mand", "remount", "bind", "rbind", "move":
            throw Mistake(
                text: name == "remount"
                    ? "'remount' is not supported: 'yonder set' changes the options of a mount"
                    : "'\(name)' is not supported"
                        + (name.hasPrefix("user") ? ": an ordinary user mounts with 'yonder mount'" : ""))
        default:
            let value = parts.count > 1 ? "=" + parts[1] : ""
            return "--" + name.replacing("_", with: "-") + value
        }
    }
}
