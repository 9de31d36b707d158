import ArgumentParser
import Control
import Synchronization

extension Yonder {
    struct DiskUsage: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "du", abstract: "Show local disk usage, largest first.",
            discussion: """
                Counts the bytes that are on this machine, below a path. Beside them stands how much there would be if everything \
                was downloaded; that is 'at least' a number where a directory was never listed. Fetches nothing. \
                A file with several names counts once.
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
            let given = path?.withSlash ?? AbsolutePath.resolving(".")
            let top = path?.text ?? given
            let usage = Mutex(LocalUsage(below: top, depth: depth, showsFiles: all))
            let isEmpty = Mutex(true)
            let add: @Sendable ([ItemInformation]) -> Void = { items in
                if !items.isEmpty { isEmpty.withLock { $0 = false } }
                usage.withLock { $0.add(items) }
            }
            let daemon = DaemonConnection()
            let result = try await daemon.perform(
                .ls(path: given, isRecursive: true),
                onPart: { part in if case .items(let items) = part { add(items) } })
            guard case .items(let items) = result else { throw unexpected(result) }
            add(items)
            // An empty directory and one that was never listed would look the same.
            if isEmpty.withLock({ $0 }), case .item(let directory) = try await daemon.perform(.info(path: given)) {
                add([directory])
            }
            let entries = usage.withLock { $0.entries }
            try Output(output).print(entries) {
                Output.table(
                    entries.map { entry in
                        let size = (entry.unlisted > 0 ? "at least " : "") + ByteText.text(entry.size)
                        return [ByteText.text(entry.local), "of \(size)", entry.path]
                    })
            }
        }
    }
}
