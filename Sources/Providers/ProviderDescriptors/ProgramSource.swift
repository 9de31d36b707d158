import Foundation

/// A source that a program serves: `NAME:ANYTHING`.
package struct ProgramSource: Hashable, Sendable {
    package var name: String
    /// What comes after `NAME:`; only the program knows what it means.
    package var location: String

    /// Nil for a source that has no name of a program: lower-case letters, digits, `-` and `_`, at least two.
    package init?(_ source: String) {
        let parts = source.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, (2...64).contains(parts[0].utf8.count), parts[0].utf8.allSatisfy(Self.isName) else {
            return nil
        }
        (name, location) = (String(parts[0]), String(parts[1]))
    }

    private static func isName(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_")
    }

    package var programName: String { "yonder-provider-\(name)" }

    /// Where programs are searched, and what to do about a missing one, for the user.
    ///
    /// - Parameter isDaemon: whether the environment is that of the daemon, which the user's shell does not show.
    package static func places(in environment: [String: String], isDaemon: Bool) -> String {
        let folders = folders(in: environment)
        let places = folders.map { "'\($0)'" }.joined(separator: ", ")
        guard isDaemon else { return "\(places) and PATH" }
        return "\(places) and the daemon's PATH, which may differ from the shell's: put it into '\(folders[0])', or "
            + "run 'yonder shutdown' and start the daemon with a PATH that has it"
    }

    /// The path of the program; nil if there is none that can be executed.
    package func program(in environment: [String: String]) -> String? {
        files(in: environment).first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// The path of a file with the program's name, also of one that cannot be executed.
    package func file(in environment: [String: String]) -> String? { files(in: environment).first }

    private static func folders(in environment: [String: String]) -> [String] {
        let configuration = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = configuration ?? environment["HOME"].map { $0 + "/.config" }
        return [home.map { $0 + "/yonder/providers" }, "/usr/lib/yonder/providers"].compactMap { $0 }
    }

    private func files(in environment: [String: String]) -> [String] {
        let path = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (Self.folders(in: environment) + path).filter { $0.hasPrefix("/") }.map { "\($0)/\(programName)" }.filter
        {
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory) && !isDirectory.boolValue
        }
    }
}
