import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Log: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the log of a daemon in the background.",
            discussion: "A daemon that systemd has started writes to the journal instead: journalctl -u yonderd.")

        @Flag(name: .shortAndLong, help: "Go on with new lines as they are written.")
        var follow = false

        @Option(name: [.customShort("n"), .long], help: "The number of last lines to begin with; all by default.")
        var lines: Int?

        private static let piece = 1 << 16

        func validate() throws {
            if let lines, lines < 0 { throw ValidationError("--lines takes a number") }
        }

        func run() async throws {
            let path = Places(environment: ProcessInfo.processInfo.environment).log
            guard let file = FileHandle(forReadingAtPath: path) else {
                Output.complain("\(path): there is no log; a daemon in the background writes one")
                throw ExitCode(1)
            }
            if let lines { try skip(to: lines, in: file) }
            repeat {
                while let text = try file.read(upToCount: Self.piece), !text.isEmpty {
                    FileHandle.standardOutput.write(text)
                }
                if follow { try await Task.sleep(for: .milliseconds(250)) }
            } while follow
        }

        /// Moves to the beginning of the last lines.
        private func skip(to count: Int, in file: FileHandle) throws {
            let end = try file.seekToEnd()
            var (position, found) = (end, 0)
            while position > 0 {
                let start = position - min(position, UInt64(Self.piece))
                try file.seek(toOffset: start)
                let bytes = try file.read(upToCount: Int(position - start)) ?? Data()
                for (index, byte) in bytes.enumerated().reversed() where byte == UInt8(ascii: "\n") {
                    let next = start + UInt64(index) + 1
                    // The last line ends with the file.
                    if next == end { continue }
                    found += 1
                    if found == count { return try file.seek(toOffset: next) }
                }
                position = start
            }
            try file.seek(toOffset: count == 0 ? end : 0)
        }
    }
}
