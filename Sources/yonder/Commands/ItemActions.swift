import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Upload: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send what is pending of items, directories with all below them, and wait for the remote.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(
            name: .customLong("field"), parsing: .singleValue,
            help: ArgumentHelp(
                "Send this field of the items themselves, also when it is unchanged: contents, permissions and so on, "
                    + "as 'yonder pending' names them. May be given several times.", valueName: "field"))
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
            abstract: "Make directories, also in a directory that was never listed.")

        @Argument(help: "Paths in a mount.", completion: .directory)
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: "made").run(
                .createDirectories(paths: paths.map(AbsolutePath.resolving)))
        }
    }

    struct Rename: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give an item another name in its directory.")

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
            abstract: "Move items into another directory of the domain, under their names.",
            usage: "yonder move <path> ... <directory>")

        @Argument(help: "Paths in a mount, the directory last.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("say what is to be moved, and into which directory") }
        }

        func run() async throws {
            let paths = paths.map(AbsolutePath.resolving)
            try await ItemAction(output: output, verb: "moved").run(
                .move(paths: Array(paths.dropLast()), directory: paths.last ?? ""))
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy files of this machine into a directory of a mount.",
            usage: "yonder add <file> ... <directory>")

        @Argument(help: "Files, and last a directory in a mount.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("say what is to be copied, and into which directory") }
        }

        func run() async throws {
            let paths = paths.map(AbsolutePath.resolving)
            try await ItemAction(output: output, verb: "added").run(
                .importDocuments(files: Array(paths.dropLast()), directory: paths.last ?? ""))
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete items for good, directories with all below them.")

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
            abstract: "Make items favourites, or favourites no more.",
            discussion: "'yonder ls' and 'yonder info' show them, and the remote is told where it keeps such things.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(help: "The place among the favourites; the lowest comes first.")
        var rank: Int64 = 1

        @Flag(help: "Take the items out of the favourites.")
        var remove = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await ItemAction(output: output, verb: remove ? "removed from the favourites" : "made a favourite").run(
                .setFavoriteRank(paths: paths.map(AbsolutePath.resolving), rank: remove ? nil : rank))
        }
    }

    struct Tag: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give items tags in place of those that they have.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(
            name: .customLong("set"), parsing: .singleValue,
            help: ArgumentHelp("A tag. May be given several times.", valueName: "tag"))
        var tags: [String] = []

        @Flag(help: "Take all tags away.")
        var clear = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if clear == !tags.isEmpty { throw ValidationError("say --set TAG or --clear") }
            if tags.contains(where: { $0.isEmpty || $0.utf8.contains(0x0A) || $0.utf8.contains(0) }) {
                throw ValidationError("a tag is a line of text")
            }
        }

        func run() async throws {
            try await ItemAction(output: output, verb: "tagged").run(
                .setTagData(paths: paths.map(AbsolutePath.resolving), data: clear ? nil : Tags.data(tags)))
        }
    }

    struct Used: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Note when items were last used: now, or at a time.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(help: ArgumentHelp("As RFC 3339 has it, such as 2026-01-31T12:00:00Z.", valueName: "time"))
        var at: String?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let at, Self.date(at) == nil {
                throw ValidationError("'\(at)' is not a time: 2026-01-31T12:00:00Z is one")
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
