import ArgumentParser
import Control

extension Yonder {
    struct Download: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Download items, directories recursively, and wait.")

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("Only this range of one file, in bytes.", valueName: "offset:length"),
            transform: Self.parse)
        var range: (offset: Int64, length: Int64)?

        @OptionGroup var items: ItemArguments

        func validate() throws {
            if range != nil, items.paths.count != 1 { throw ValidationError("--range is for one file") }
        }

        private static func parse(_ range: String) throws -> (offset: Int64, length: Int64) {
            let parts = range.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, let offset = Int64(parts[0]), let length = Int64(parts[1]), offset >= 0, length > 0
            else {
                throw ValidationError("'\(range)' is not a range: OFFSET:LENGTH, both in bytes, LENGTH at least 1")
            }
            return (offset, length)
        }

        var verb: String { "downloaded" }
        var request: ControlCommand {
            guard let range, let path = items.texts.first else { return .download(paths: items.texts) }
            return .downloadRange(path: path, offset: range.offset, length: range.length)
        }
    }

    struct Evict: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the local content of items, directories recursively.",
            discussion: "An item that cannot be evicted is reported and skipped; --strict stops at it.")

        @Flag(help: "Stop at the first item that cannot be evicted.")
        var strict = false

        @OptionGroup var items: ItemArguments

        var verb: String { "evicted" }
        var request: ControlCommand { .evict(paths: items.texts, isStrict: strict) }
    }

    struct Pin: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Keep items downloaded, directories recursively.",
            discussion: """
                Missing content is downloaded in the background, also of items that are added or changed later; \
                'yonder status' shows the progress. The items are not evicted.
                """)

        @OptionGroup var items: ItemArguments

        var verb: String { "pinned" }
        var request: ControlCommand { .setPolicy(paths: items.texts, policy: "keepDownloaded") }
    }

    struct Unpin: ItemListCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reset the policy of items to that of their directory. Local content stays until it is evicted.")

        @OptionGroup var items: ItemArguments

        var verb: String { "unpinned" }
        var request: ControlCommand { .setPolicy(paths: items.texts, policy: "inherited") }
    }
}
