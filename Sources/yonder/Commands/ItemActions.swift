import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Upload: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Upload the pending changes of items now, directories recursively, and wait for the remote.")

        @Option(
            name: .customLong("field"), parsing: .singleValue,
            help: ArgumentHelp(
                "Upload this field of the items themselves, changed or not: contents, permissions and so on, as "
                    + "'yonder pending --json' names them. May be repeated.", valueName: "field"))
        var fields: [String] = []

        @OptionGroup var items: ItemArguments

        var verb: String { "uploaded" }
        var request: ControlCommand { .items(.upload(paths: items.texts, fields: fields)) }
    }

    struct MakeDirectory: ItemListCommand {
        static let configuration = CommandConfiguration(
            commandName: "mkdir",
            abstract: "Create directories, also in a directory that was never listed.")

        @OptionGroup var items: ItemArguments

        var verb: String { "made" }
        var request: ControlCommand { .items(.createDirectories(paths: items.paths.map(\.itself))) }
    }

    struct Rename: ItemCommand {
        static let configuration = CommandConfiguration(abstract: "Rename an item in its directory.")

        @Argument(help: "A path in a mount.")
        var path: AbsolutePath

        @Argument(help: "The new name.")
        var name: String

        @OptionGroup var output: OutputOptions

        var verb: String { "renamed" }
        var request: ControlCommand { .items(.rename(path: path.itself + path.slash, name: name)) }
    }

    struct Move: ItemCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move items to another directory of the domain.",
            usage: "yonder move <path> ... <directory>")

        @Argument(help: "Paths in a mount; the last one is the directory.")
        var paths: [AbsolutePath]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("give the items to move and the directory") }
        }

        var verb: String { "moved" }
        var request: ControlCommand {
            .items(.move(paths: paths.dropLast().map { $0.itself + $0.slash }, directory: paths.last?.text ?? ""))
        }
    }

    struct Add: ItemCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy local files into a directory of a mount.",
            usage: "yonder add <file> ... <directory>")

        @Argument(help: "Local files; the last path is a directory in a mount.")
        var paths: [AbsolutePath]

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if paths.count < 2 { throw ValidationError("give the files to copy and the directory") }
        }

        var verb: String { "added" }
        var request: ControlCommand {
            .items(.importDocuments(files: paths.dropLast().map(\.itself), directory: paths.last?.text ?? ""))
        }
    }

    struct Delete: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete items permanently, directories recursively.")

        @OptionGroup var items: ItemArguments

        var verb: String { "deleted" }
        var request: ControlCommand { .items(.delete(paths: items.themselves)) }
    }

    struct Favorite: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add items to the favourites, or remove them.",
            discussion:
                "'yonder ls' and 'yonder info' show favourites. They are uploaded to remotes that can store them.")

        @Option(parsing: .unconditional, help: "The rank among the favourites, 1 by default; the lowest is first.")
        var rank: Int64?

        @Flag(help: "Remove the items from the favourites.")
        var remove = false

        @OptionGroup var items: ItemArguments

        func validate() throws {
            if remove, rank != nil { throw ValidationError("give --rank or --remove") }
        }

        var verb: String { remove ? "removed from the favourites" : "made a favourite" }
        var request: ControlCommand { .items(.setFavoriteRank(paths: items.texts, rank: remove ? nil : rank ?? 1)) }
    }

    struct Tag: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the tags of items.")

        @Option(
            name: .customLong("set"), parsing: .singleValue,
            help: ArgumentHelp("A tag. May be repeated.", valueName: "tag"))
        var tags: [String] = []

        @Flag(help: "Remove all tags.")
        var clear = false

        @OptionGroup var items: ItemArguments

        func validate() throws {
            if clear == !tags.isEmpty { throw ValidationError("give --set TAG or --clear") }
            if tags.contains(where: { $0.isEmpty || $0.utf8.contains(0x0A) || $0.utf8.contains(0) }) {
                throw ValidationError("a tag is a non-empty line of text")
            }
        }

        var verb: String { "tagged" }
        var request: ControlCommand { .items(.setTagData(paths: items.texts, data: clear ? nil : Tags.data(tags))) }
    }

    struct Used: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the time of the last use of items to now, or to a given time.")

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("A time in RFC 3339 format, for example 2026-01-31T12:00:00Z.", valueName: "time"),
            transform: Self.date)
        var at: Date?

        @OptionGroup var items: ItemArguments

        private static func date(_ text: String) throws -> Date {
            // A day that the month does not have would be one of the next month.
            let plain = "\(text.prefix(19))Z"
            guard isEnd(text.dropFirst(19)), let date = try? Date(text, strategy: .iso8601),
                let same = try? Date(plain, strategy: .iso8601),
                Date.ISO8601FormatStyle().format(same) == plain
            else {
                throw ValidationError("'\(text)' is not a time in RFC 3339 format, for example 2026-01-31T12:00:00Z")
            }
            return date
        }

        /// Whether a text is what follows the seconds: a fraction or none, then `Z` or an offset. Foundation ignores what is behind that.
        private static func isEnd(_ text: Substring) -> Bool {
            let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
            var rest = Array(text.utf8)[...]
            if rest.first == UInt8(ascii: ".") {
                let fraction = rest.dropFirst().prefix { digits.contains($0) }
                guard !fraction.isEmpty else { return false }
                rest = rest[fraction.endIndex...]
            }
            if rest.elementsEqual("Z".utf8) || rest.elementsEqual("z".utf8) { return true }
            guard rest.count == 6, rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") else {
                return false
            }
            return rest.dropFirst().enumerated().allSatisfy { index, byte in
                index == 2 ? byte == UInt8(ascii: ":") : digits.contains(byte)
            }
        }

        var verb: String { "noted" }
        var request: ControlCommand {
            let time = (at ?? .now).timeIntervalSince1970
            let seconds = time.rounded(.down)
            return .items(
                .setLastUsedDate(
                    paths: items.texts, seconds: Int64(seconds), nanoseconds: Int64((time - seconds) * 1e9)))
        }
    }
}
