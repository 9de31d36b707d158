import ArgumentParser
import Control

extension Yonder {
    struct Trash: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move items to the trash, list, restore and delete them.",
            subcommands: [Put.self, TrashList.self, Restore.self, Empty.self])
    }
}

extension Yonder.Trash {
    struct Put: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move items to the trash, directories recursively.")

        @OptionGroup var items: ItemArguments

        var verb: String { "trashed" }
        var request: ControlCommand { .trash(.put(paths: items.themselves)) }
    }

    struct TrashList: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the trash: time of trashing, name in the trash, original path.")

        @OptionGroup var domain: DomainArgument

        func run() async throws {
            let result = try await DaemonConnection().perform(.trash(.list(domain.name)))
            guard case .trash(let report) = result else { throw unexpected(result) }
            try Output(domain.output).print(report.items) {
                Output.table(
                    report.items.map { item in
                        [
                            item.trashed.map(Self.toTheSecond) ?? "-", Self.lastName(of: item.path),
                            item.originalPath,
                        ]
                    })
            }
        }

        /// An RFC 3339 time without the fraction of a second.
        private static func toTheSecond(_ date: String) -> String {
            guard let point = date.utf8.firstIndex(of: UInt8(ascii: ".")),
                let end = date.utf8[point...].lastIndex(where: { (0x30...0x39).contains($0) })
            else { return date }
            return String(date[..<point]) + date[date.utf8.index(after: end)...]
        }

        private static func lastName(of path: String) -> String {
            path.utf8.lastIndex(of: 0x2F).map { String(path[path.index(after: $0)...]) } ?? path
        }
    }

    struct Restore: ItemCommand {
        static let configuration = CommandConfiguration(
            abstract: "Restore items from the trash.",
            discussion: """
                An item is moved to its original directory, or to the nearest ancestor that still exists. If its name is \
                taken, it gets another one.
                """)

        @Argument(
            help: """
                Paths under '.Trash-UID/files' in a mount, or names or original paths as 'yonder trash list' prints them.
                """,
            completion: .file())
        var items: [DomainReference]

        @Option(
            name: .customLong("to"), help: ArgumentHelp("Restore to this directory instead.", valueName: "directory"))
        var directory: AbsolutePath?

        @OptionGroup var output: OutputOptions

        var verb: String { "restored" }
        var request: ControlCommand { .trash(.restore(items: items, directory: directory?.text)) }
    }

    struct Empty: ItemCommand {
        static let configuration = CommandConfiguration(abstract: "Delete all items in the trash permanently.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @OptionGroup var output: OutputOptions

        var verb: String { "deleted" }
        var request: ControlCommand { .trash(.empty(name)) }
    }
}
