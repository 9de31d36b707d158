import Foundation

/// The program in the first line of a script (`#!`, execve(2)).
enum ScriptInterpreter {
    /// The interpreter of a script that is not installed; nil if it is, or for a program that is no script.
    static func missing(of program: String, in environment: [String: String]) -> String? {
        guard let file = FileHandle(forReadingAtPath: program) else { return nil }
        defer { try? file.close() }
        // The kernel reads as much.
        let start = [UInt8]((try? file.read(upToCount: 256)) ?? Data())
        guard start.starts(with: "#!".utf8), let line = start.split(separator: UInt8(ascii: "\n")).first else {
            return nil
        }
        let words = String(decoding: line.dropFirst(2), as: UTF8.self)
            .split { $0 == " " || $0 == "\t" }.map(String.init)
        guard let interpreter = words.first else { return nil }
        guard FileManager.default.isExecutableFile(atPath: interpreter) else { return interpreter }
        // `env` searches the program itself.
        guard interpreter.hasSuffix("/env"), words.count > 1, let name = words.dropFirst().first(where: { $0 != "-S" }),
            !name.hasPrefix("-"), !name.contains("="), !name.contains("/")
        else { return nil }
        let folders = (environment["PATH"] ?? "").split(separator: ":")
        return folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") } ? nil : name
    }
}
