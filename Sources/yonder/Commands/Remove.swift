import ArgumentParser
import Control
import Foundation
import Syscalls
import SystemPackage

extension Yonder {
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unmount and forget a domain. The remote stays unchanged.",
            discussion: """
                By default, changes that exist only on this machine are kept as plain files in a folder, with a manifest \
                for 'yonder import'. The command prints the folder. The exit status is 1 if something could not be kept.
                """)

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @Option(
            help: ArgumentHelp(
                "What to keep: none; dirty: changes that have not been uploaded; downloaded: all local content.",
                valueName: "none|dirty|downloaded"))
        var keep: KeptData?

        @Option(
            help: ArgumentHelp("The folder for kept data; created, or empty.", valueName: "dir"),
            completion: .directory)
        var to: AbsolutePath?

        @Flag(help: "Discard changes that exist only on this machine (with '--keep none'), and ignore open files.")
        var force = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard keep == KeptData.none, to != nil else { return }
            throw ValidationError("--to is a folder for kept data, and '--keep none' keeps none")
        }

        func run() async throws {
            let daemon = DaemonConnection()
            _ = try await daemon.start()
            let result = try await daemon.perform(
                .remove(RemoveArguments(domain: name, keep: keep, directory: to?.place, isForced: force)),
                showing: ProgressLine("kept", options: output))
            guard case .removed(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                guard let directory = report.directory else {
                    return ["'\(report.name)' is removed; nothing was kept"]
                }
                let files = Output.count(report.files, "file")
                return [
                    "'\(report.name)' is removed; \(files), \(ByteText.text(report.bytes)), kept in",
                    directory,
                ]
            }
            let refusals = report.refusals ?? []
            if refusals.isEmpty, let notKept = report.notKept, !notKept.isEmpty {
                for text in notKept { Output.complain("not kept: \(text)") }
                throw ExitCode(1)
            }
            try Output.complain(about: refusals)
        }
    }

    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a folder the replica of a new domain, without downloading its content again.",
            discussion: """
                FOLDER's files become the content of the domain that mounts SOURCE on DIR; DIR may be FOLDER itself. \
                Files that SOURCE already has are recognized, missing files are uploaded, and of different files both \
                versions are kept. A recognized file gets SOURCE's mode, owner and dates, and its extended attributes if it \
                has any there. The files are moved: FOLDER is gone afterwards, or is the mount. On a terminal the \
                command asks before. With --copy, and on another file system than the daemon's state, they are copied, \
                and FOLDER stays. A folder that 'yonder remove' has kept is restored.
                """)

        @Argument(help: "The folder to import.", completion: .directory)
        var folder: String

        @Argument(help: "The source to mount.", completion: .directory)
        var source: String

        @Argument(help: "The directory to mount on.", completion: .directory)
        var dir: AbsolutePath

        @Option(help: "The domain's name; the directory's by default.")
        var name: String?

        @Flag(help: "Copy the files. FOLDER stays as it is.")
        var copy = false

        @Flag(name: .shortAndLong, help: "Do not ask whether the files may be moved.")
        var yes = false

        @OptionGroup var remote: RemoteOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try SourcePath.refusePassword(in: source)
            try remote.check(for: source)
        }

        func run() async throws {
            var arguments = MountArguments(
                source: try SourcePath.resolving(source), directory: dir.place, name: name)
            try remote.add(to: &arguments, for: source)
            let path = try SourcePath.resolving(folder)
            let daemon = DaemonConnection()
            _ = try await daemon.start()
            if !copy, !yes { try await confirm(path) }
            let result = try await daemon.perform(
                .importFolder(path, arguments: arguments, isCopied: copy),
                showing: ProgressLine("imported", options: output)
            ) { error in
                try remote.completed(arguments, after: error).map { .importFolder(path, arguments: $0, isCopied: copy) }
            }
            guard case .imported(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                let items = Output.count(report.items, "item")
                var lines = [
                    "'\(report.domain.name)' is mounted on \(report.domain.mountpoint ?? ""): "
                        + "\(items), \(ByteText.text(report.bytes)) imported"
                ]
                if !report.isTaken {
                    let reason = copy ? "" : " is on another file system: it"
                    lines.append("\(folder)\(reason) was copied and stays unchanged")
                }
                return lines
            }
            for path in report.left {
                Output.complain("\(path): left in place, because it was changed or cannot be removed")
            }
            if !report.left.isEmpty { throw ExitCode(1) }
        }

        /// Asks on a terminal whether the folder's files may be moved, where they would be.
        ///
        /// - Throws: `ExitCode` 1 if not.
        private func confirm(_ path: String) async throws {
            let state = Places(environment: ProcessInfo.processInfo.environment).stateDirectory
            guard Question.canBeAsked,
                let device = try? FileStatus(at: FilePath(fileNamed: path)).device,
                (try? FileStatus(at: FilePath(state)).device) == device
            else { return }
            let end = dir.place == path ? "and are seen there through the mount" : "and '\(path)' is removed"
            guard
                await Question.ask(
                    "the files of '\(path)' are moved into the new domain, \(end); '--copy' copies them. Files that "
                        + "the source has with equal content get its modes, owners and dates. Go on?")
            else {
                throw Output.failure("nothing was changed")
            }
        }
    }
}
