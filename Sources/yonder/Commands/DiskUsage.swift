import ArgumentParser
import Control
import Synchronization

extension Yonder {
    struct DiskUsage: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "du", abstract: "Show local disk usage, largest first.",
            discussion: """
                Counts the bytes that are on this machine, below a path. Beside them stands how much there would be if everything \
                was downloaded. Fetches nothing. A file with several names counts once.
                """)

        @Option(
            name: [.customShort("d"), .long], parsing: .unconditional,
            help: ArgumentHelp("Show directories so many levels below the path.", valueName: "number"))
        var depth = 1

        @Flag(name: .shortAndLong, help: "Show files, too.")
        var all = false

        @Argument(help: "A path in a mount; by default the working directory.")
        var path: AbsolutePath?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if depth < 0 { throw ValidationError("--depth takes a number from 0") }
        }

        func run() async throws {
            let top = path?.text ?? AbsolutePath.resolving(".")
            let usage = Mutex(LocalUsage(below: top, depth: depth, showsFiles: all))
            let daemon = DaemonConnection()
            let result = try await daemon.perform(
                .ls(path: top, isRecursive: true),
                onPart: { part in if case .items(let items) = part { usage.withLock { $0.add(items) } } })
            guard case .items(let items) = result else { throw unexpected(result) }
            let entries = usage.withLock { usage in
                usage.add(items)
                return usage.entries
            }
            try Output(output).print(entries) {
                Output.table(
                    entries.map { [ByteText.text($0.local), "of \(ByteText.text($0.size))", $0.path] })
            }
        }
    }
}
