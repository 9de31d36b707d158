import ArgumentParser
import Control
import Foundation
import Syscalls
import SystemPackage

extension Yonder {
    struct Log: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the daemon's log.",
            discussion: "The log of a daemon that systemd has started is in the journal: this runs journalctl then.")

        @Flag(name: .shortAndLong, help: "Go on with new lines as they are written.")
        var follow = false

        @Option(
            name: [.customShort("n"), .long], parsing: .unconditional,
            help: "The number of last lines to begin with; all by default.")
        var lines: Int?

        @Option(
            help: ArgumentHelp(
                "Change how much the daemon logs, until it is restarted: debug, info, notice, warning or error. Without "
                    + "--follow, prints nothing.", valueName: "level"),
            completion: .list(["debug", "info", "notice", "warning", "error"]))
        var level: String?

        @OptionGroup var output: OutputOptions

        private static let piece = 1 << 16
        private static let pause = Duration.milliseconds(250)

        func validate() throws {
            if let lines, lines < 0 { throw ValidationError("--lines takes a number from 0") }
        }

        func run() async throws {
            var lines = lines
            if let level {
                _ = try await DaemonConnection().perform(.setLogLevel(level))
                guard follow else { return }
                lines = lines ?? 0
            }
            if let unit = await Self.unitOfDaemon() { return try await showJournal(of: unit, lines: lines) }
            let path = Places(environment: ProcessInfo.processInfo.environment).log
            var opened = try Self.open(path)
            if opened == nil {
                Output.complain("\(path): there is no log yet; a daemon in the background writes one")
                guard follow else { return }
                while opened == nil {
                    try await Task.sleep(for: Self.pause)
                    Output.endWithoutReader()
                    // systemd may start the next daemon.
                    if let unit = await Self.unitOfDaemon() { return try await showJournal(of: unit, lines: lines) }
                    opened = try Self.open(path)
                }
                // All of its lines are new.
                lines = nil
            }
            guard let file = opened else { return }
            var printer = LogPrinter(Output(output)) { LogLine($0) }
            let missing = try lines.map { try skip(to: $0, in: file) }
            // The daemon moves the content there when there is much.
            if missing != 0, let older = FileHandle(forReadingAtPath: path + ".1") {
                if let missing { _ = try skip(to: missing, in: older) }
                try copy(older, to: &printer)
                try printer.finish()
            }
            repeat {
                try copy(file, to: &printer)
                if follow { try await Task.sleep(for: Self.pause) }
                // It was truncated. What came between the last look and that is in the older one.
                let length = try FileDescriptor(rawValue: file.fileDescriptor).lengths().size
                if try file.offset() > length { try file.seek(toOffset: 0) }
            } while follow
            try printer.finish()
        }

        /// - Returns: nil if there is no log.
        /// - Throws: `ExitCode` after printing the error.
        private static func open(_ path: String) throws -> FileHandle? {
            do {
                let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
                return FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: true)
            } catch Errno.noSuchFileOrDirectory {
                return nil
            } catch {
                throw Output.failure(
                    "\(path): the log cannot be read: \(error)", exit: ControlError.Code(of: error).exitStatus)
            }
        }

        /// Prints the rest of a file.
        private func copy(_ file: FileHandle, to printer: inout LogPrinter) throws {
            while let text = try file.read(upToCount: Self.piece), !text.isEmpty {
                try printer.print([UInt8](text))
                Output.endWithoutReader()
            }
        }

        /// The unit in which the running daemon is; nil for a daemon that systemd has not started.
        private static func unitOfDaemon() async -> UnitName? {
            let places = Places(environment: ProcessInfo.processInfo.environment).ofRunningDaemon
            guard await ControlClient.answers(at: places.socket),
                case .status(let report) = try? await ControlClient(socket: places.socket).perform(.status(nil)),
                let groups = try? String(contentsOfFile: "/proc/\(report.daemon.worker)/cgroup", encoding: .utf8)
            else { return nil }
            return UnitName(controlGroups: groups)
        }

        /// Becomes journalctl, or reads what it prints as JSON.
        private func showJournal(of unit: UnitName, lines: Int?) async throws {
            let words =
                (unit.isOfUser ? ["--user"] : []) + ["--unit", unit.name] + (follow ? ["--follow"] : [])
                + ["--lines", lines.map(String.init) ?? "all"]
            guard output.json else {
                throw Self.complaint(Machine.become(["journalctl"] + words + ["--output", "short-iso"]))
            }
            let (entries, entry) = try FileDescriptor.closeOnExecPipe()
            defer { try? entries.close() }
            let process: ChildProcess
            do {
                defer { try? entry.close() }
                let launch = ChildProcess.Launch(
                    "journalctl", words + LogLine.journalOutput, environment: ProcessInfo.processInfo.environment,
                    in: nil)
                process = try await ChildProcess.start(launch, output: entry, errors: FileDescriptor.standardError)
            } catch {
                throw Self.complaint(error)
            }
            var printer = LogPrinter(Output(output)) { LogLine(journalEntry: $0) }
            while case let bytes = entries.nextBytes(atMost: Self.piece), !bytes.isEmpty {
                try printer.print(bytes)
                Output.endWithoutReader()
            }
            try printer.finish()
            let end = await process.waitForEnd()
            if end != .exited(0) { throw ExitCode(end.exitStatus) }
        }

        private static func complaint(_ failure: any Error) -> ExitCode {
            Output.complain("journalctl cannot be started: \(failure)")
            return ExitCode(1)
        }

        /// Moves to the beginning of the last lines.
        ///
        /// - Returns: how many lines fewer there are.
        private func skip(to count: Int, in file: FileHandle) throws -> Int {
            guard count > 0 else {
                try file.seekToEnd()
                return 0
            }
            let end = try file.seekToEnd()
            // The first line has no end of another before it.
            var (position, found) = (end, end > 0 ? 1 : 0)
            while position > 0 {
                let start = position - min(position, UInt64(Self.piece))
                try file.seek(toOffset: start)
                let bytes = try file.read(upToCount: Int(position - start)) ?? Data()
                for (index, byte) in bytes.enumerated().reversed() where byte == UInt8(ascii: "\n") {
                    let next = start + UInt64(index) + 1
                    // The last line ends with the file.
                    if next == end { continue }
                    if found == count {
                        try file.seek(toOffset: next)
                        return 0
                    }
                    found += 1
                }
                position = start
            }
            try file.seek(toOffset: 0)
            return count - found
        }
    }
}
