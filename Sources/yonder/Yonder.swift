import ArgumentParser
import Control
import Foundation
import Glibc
import Syscalls
import SystemPackage

@main
struct Yonder: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "yonder",
        abstract:
            "Mounts a remote as a directory. All items are visible at once; content is downloaded when it is read.",
        version: Version.current,
        subcommands: [
            Mount.self, Unmount.self, Domains.self, Providers.self, Provider.self, Status.self, List.self,
            DiskUsage.self, Info.self, Why.self, Download.self, Upload.self, Evict.self, MakeDirectory.self,
            Rename.self, Move.self, Add.self, Delete.self, Favorite.self, Tag.self, Used.self, Pin.self, Unpin.self,
            Pending.self, Wait.self, Signal.self, Retry.self, Pause.self, Resume.self, ShowOptions.self,
            SetOptions.self, Allow.self, Conflicts.self, Trash.self, Check.self, Reimport.self, Import.self,
            Remove.self, Events.self, Run.self, Top.self, Metrics.self,
            Dashboard.self, Log.self, Doctor.self, Daemon.self, Shutdown.self,
        ])

    static func main() async {
        FileDescriptor.reserveStandard()
        // A write to a closed pipe fails with EPIPE instead of a signal.
        signal(SIGPIPE, SIG_IGN)
        for (name, path) in Places.relativePaths(in: ProcessInfo.processInfo.environment) {
            guard Machine.currentDirectory != nil else {
                Output.complain("\(name) has a relative path, and the working directory is gone; give an absolute one")
                Glibc.exit(64)
            }
            Machine.setEnvironmentVariable(name, to: AbsolutePath.resolving(path))
        }
        var arguments = Machine.arguments
        if Machine.programName == MountHelper.name {
            do throws(MountHelper.Mistake) {
                guard let translated = try MountHelper.arguments(arguments) else { return }
                arguments = translated
            } catch {
                Output.complain(error.text)
                Glibc.exit(64)
            }
        }
        if let unknown = unknownCommand(in: arguments) {
            Output.complain(unknown)
            Glibc.exit(64)
        }
        await perform(arguments)
    }

    /// Does what ArgumentParser's `main` does, which ends with 0 when help, version or completions cannot be written, and prints
    /// arguments as they are: `yonder ls *` has names that a remote has given.
    private static func perform(_ arguments: [String]) async {
        do {
            var command = try await asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            let (code, text) = (exitCode(for: error), fullMessage(for: error))
            if code.isSuccess {
                if !text.isEmpty { Output.write(text + "\n", to: .standardOutput) }
            } else if !text.isEmpty {
                let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map {
                    LineText.escaped(String($0))
                }
                Output.write(lines.joined(separator: "\n") + "\n", to: .standardError)
            }
            Glibc.exit(code.rawValue)
        }
    }

    /// What is wrong if a word that must be a command is none: the first, or any after `help`, for which ArgumentParser would show
    /// the help of the command before.
    private static func unknownCommand(in arguments: [String]) -> String? {
        let words: ArraySlice<String> = arguments.first == "help" ? arguments.dropFirst() : arguments.prefix(1)
        var commands = configuration.subcommands
        var path = ""
        for word in words {
            if word.hasPrefix("-") || word == "help" { return nil }
            guard let command = commands.first(where: { name(of: $0) == word }) else {
                let suggestion = CommandNames.suggestion(for: word, among: commands.map { name(of: $0) })
                let hint = suggestion.map { "did you mean '\(path)\($0)'?" } ?? "'yonder --help' lists all"
                return "there is no command '\(path)\(word)'; \(hint)"
            }
            commands = command.configuration.subcommands
            path += word + " "
        }
        return nil
    }

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}
