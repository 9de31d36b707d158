import ArgumentParser
import Control

extension KeptData: ExpressibleByArgument {}

extension Yonder {
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget a domain. Its mount goes, and what the remote has stays there.",
            discussion: """
                What only this machine has is kept unless told otherwise: as plain files in a folder, with a manifest \
                by which 'yonder import' takes them back. Says where.
                """)

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: String

        @Option(
            help: ArgumentHelp(
                "none: nothing; dirty: what the remote has not got; downloaded: all whose content is here.",
                valueName: "none|dirty|downloaded"))
        var keep: KeptData?

        @Option(
            help: ArgumentHelp("Keep it in this folder, which is made or empty.", valueName: "dir"),
            completion: .directory)
        var to: String?

        @Flag(help: "Let go what only this machine has, with '--keep none', and remove although files are open.")
        var force = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let line = ProgressLine("kept", options: output)
            let arguments = RemoveArguments(
                domain: DomainReference(name), keep: keep, directory: to.map(AbsolutePath.resolving), isForced: force)
            let result: ControlResult
            let daemon = DaemonConnection()
            do {
                _ = try await daemon.start()
                result = try await daemon.perform(.remove(arguments), onEvent: line.show)
                line.clear()
            } catch {
                line.clear()
                throw error
            }
            guard case .removed(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                guard let directory = report.directory else {
                    return ["'\(Output.shown(report.name))' is removed; nothing was kept"]
                }
                let files = Output.count(report.files, "file")
                return [
                    "'\(Output.shown(report.name))' is removed; \(files), \(ByteText.text(report.bytes)), kept in",
                    Output.shown(directory),
                ]
            }
        }
    }

    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a folder the replica of a new domain, without downloading it again.",
            discussion: """
                FOLDER's files become the content of the domain that mounts SOURCE on DIR; DIR may be FOLDER itself. \
                What SOURCE has already is recognized, what it has not is sent there, and of what it has otherwise both \
                are kept. A folder on another file system than the daemon's state is copied and stays. A folder that \
                'yonder remove' has kept is taken back as it was.
                """)

        @Argument(help: "The folder to import.", completion: .directory)
        var folder: String

        @Argument(help: "What to mount.", completion: .directory)
        var source: String

        @Argument(help: "Where to mount it.", completion: .directory)
        var dir: String

        @Option(help: "The domain's name. Without it, the directory's.")
        var name: String?

        @OptionGroup var remote: RemoteOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try remote.check(for: source)
        }

        func run() async throws {
            let options = try remote.sourceOptions(for: source)
            let line = ProgressLine("imported", options: output)
            let arguments = ImportArguments(
                folder: try SourcePath.resolving(folder), source: try SourcePath.resolving(source),
                directory: AbsolutePath.resolving(dir), name: name, credentials: options.credentials,
                objectStore: options.objectStore)
            let daemon = DaemonConnection()
            let result: ControlResult
            do {
                _ = try await daemon.start()
                result = try await daemon.perform(.importFolder(arguments), onEvent: line.show)
                line.clear()
            } catch {
                line.clear()
                throw error
            }
            guard case .imported(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                let items = Output.count(report.items, "item")
                var lines = [
                    "'\(Output.shown(report.domain.name))' is mounted on \(Output.shown(report.domain.mountpoint ?? "")): "
                        + "\(items), \(ByteText.text(report.bytes)) imported"
                ]
                if !report.isTaken {
                    lines.append("\(Output.shown(folder)) lies on another file system: it was copied, and is as it was")
                }
                return lines
            }
            for path in report.left {
                Output.complain("\(path): left where it is: it was changed, or cannot be removed")
            }
            if !report.left.isEmpty { throw ExitCode(1) }
        }
    }
}
