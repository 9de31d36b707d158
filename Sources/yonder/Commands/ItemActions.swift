import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Upload: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Upload the pending changes of items now, directories recursively, and wait for the remote.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(
            name: .customLong("field"), parsing: .singleValue,
            help: ArgumentHelp(
                "Upload this field of the items themselves, changed or not: contents, permissions and so on, as "
                    + "'yonder pending' names them. May be repeated.", valueName: "field"))
        var fields: [String] = []

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: "uploaded").run(
                .upload(paths: paths.map(AbsolutePath.resolving), fields: fields))
        }
    }

    struct MakeDirectory: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "mkdir",
            abstract: "Create directories, also in a directory that was never listed.")

        @Argument(help: "Paths in a mount.", completion: .directory)
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: "made").run(
                .createDirectories(paths: paths.map(AbsolutePath.resolving)))
        }
    }

    struct Rename: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Rename an item in its directory.")

        @Argument(help: "A path in a mount.", completion: .file())
        var path: String

        @Argument(help: "The new name.")
        var name: String

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: "renamed").run(
                .rename(path: AbsolutePath.resolving(path), name: name))
        }
    }

    struct Move: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move items to another directory of the domain.",
            usage: "yonder move <path> ... <directory>")

        @Argument(help: "Paths in a mount; the last one is the directory.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("give the items to move and the directory") }
        }

        func run() async throws {
            let paths = paths.map(AbsolutePath.resolving)
            try await ItemAction(output: output, verb: "moved").run(
                .move(paths: Array(paths.dropLast()), directory: paths.last ?? ""))
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy local files into a directory of a mount.",
            usage: "yonder add <file> ... <directory>")

        @Argument(help: "Local files; the last path is a directory in a mount.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("give the files to copy and the directory") }
        }

        func run() async throws {
            let paths = paths.map(AbsolutePath.resolving)
            try await ItemAction(output: output, verb: "added").run(
                .importDocuments(files: Array(paths.dropLast()), directory: paths.last ?? ""))
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete items permanently, directories recursively.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: "deleted").run(
                .delete(paths: paths.map(AbsolutePath.resolving)))
        }
    }

    struct Favorite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add items to the favourites, or remove them.",
            discussion:
                "'yonder ls' and 'yonder info' show favourites. They are uploaded to remotes that can store them.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(help: "The rank among the favourites; the lowest is first.")
        var rank: Int64 = 1

        @Flag(help: "Remove the items from the favourites.")
        var remove = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: remove ? "removed from the favourites" : "made a favourite").run(
                .setFavoriteRank(paths: paths.map(AbsolutePath.resolving), rank: remove ? nil : rank))
        }
    }

    struct Tag: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the tags of items.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(
            name: .customLong("set"), parsing: .singleValue,
            help: ArgumentHelp("A tag. May be repeated.", valueName: "tag"))
        var tags: [String] = []

        @Flag(help: "Remove all tags.")
        var clear = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if clear == !tags.isEmpty { throw ValidationError("give --set TAG or --clear") }
            if tags.contains(where: { $0.isEmpty || $0.utf8.contains(0x0A) || $0.utf8.contains(0) }) {
                throw ValidationError("a tag is a non-empty line of text")
            }
        }

        func run() async throws {
            try await ItemAction(output: output, verb: "tagged").run(
                .setTagData(paths: paths.map(AbsolutePath.resolving), data: clear ? nil : Tags.data(tags)))
        }
    }

    struct Used: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the time of the last use of items to now, or to a given time.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(help: ArgumentHelp("A time in RFC 3339 format, for example 2026-01-31T12:00:00Z.", valueName: "time"))
        var at: String?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let at, Self.date(at) == nil {
                throw ValidationError("'\(at)' is not a time in RFC 3339 format, for example 2026-01-31T12:00:00Z")
            }
        }

        private static func date(_ text: String) -> Date? { try? Date(text, strategy: .iso8601) }

        func run() async throws {
            let time = (at.flatMap(Self.date) ?? Date.now).timeIntervalSince1970
            let seconds = time.rounded(.down)
            try await ItemAction(output: output, verb: "noted").run(
                .setLastUsedDate(
                    paths: paths.map(AbsolutePath.resolving), seconds: Int64(seconds),
                    nanoseconds: Int64((time - seconds) * 1e9)))
        }
    }
}

/// Runs a command that changes items, and prints one line per item.
private struct ItemAction {
    let output: OutputOptions
    let verb: String

    func run(_ command: ItemsCommand) async throws {
        let result = try await DaemonConnection().perform(.items(command))
        guard case .changed(let report) = result else { throw unexpected(result) }
        for refusal in report.refusals { Output.complain("\(refusal.path): \(refusal.reason)") }
        try Output(output).print(report) {
            Terminal.isStandardOutput ? report.items.map { "\(verb) \(Output.shown($0.path))" } : []
        }
        if !report.refusals.isEmpty { throw ExitCode(1) }
    }
}
