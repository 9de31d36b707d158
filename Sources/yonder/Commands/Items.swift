import ArgumentParser
import Control
import Foundation
import Synchronization

extension Yonder {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List items with their states. Never materializes anything.",
            discussion: """
                The names are relative to PATH; a PATH that is a file is printed as an absolute path. A command that takes the \
                names has to run in that directory, since elsewhere they are other files:

                  cd DIR && yonder ls -0 . | xargs -0 COMMAND --
                """)

        @Flag(name: [.customShort("R"), .long], help: "List recursively.")
        var recursive = false

        @Option(
            help: ArgumentHelp(
                "List only items whose content is dataless, partial or materialized.", valueName: "state"),
            completion: .list(ListedState.allCases.map(\.rawValue)))
        var state: ListedState?

        @Flag(
            name: [.customShort("0"), .customLong("null")],
            help: "Print only names, relative to PATH, each with a NUL behind it.")
        var null = false

        enum ListedState: String, CaseIterable, ExpressibleByArgument {
            case dataless, partial, materialized
        }

        @Argument(help: "A path in a mount; by default the working directory.")
        var path: AbsolutePath?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if null, output.json { throw ValidationError("give --null or --json") }
        }

        func run() async throws {
            let given = self.path?.withSlash ?? AbsolutePath.resolving(".")
            let path = path?.text ?? given
            let (state, null) = (state, null)
            let list = ListOutput<ItemInformation>(Output(output)) { item in
                [
                    item.content, item.sync, item.kind == "directory" ? "-" : ByteText.text(item.size),
                    Self.name(of: item, below: path) + (item.kind == "directory" ? "/" : ""),
                ] + Self.marks(of: item)
            }
            let isEmpty = Mutex(true)
            let add: @Sendable ([ItemInformation]) throws -> Void = { items in
                if !items.isEmpty { isEmpty.withLock { $0 = false } }
                let shown = items.filter { state == nil || $0.content == state?.rawValue }
                if null {
                    let names = shown.map { Self.name(of: $0, below: path) + "\0" }
                    Output.write(names.joined(), to: .standardOutput)
                } else {
                    try list.add(shown)
                }
                Output.endWithoutReader()
            }
            let daemon = DaemonConnection()
            let result = try await daemon.perform(
                .ls(path: given, isRecursive: recursive),
                onPart: { part in if case .items(let items) = part { try add(items) } })
            guard case .items(let items) = result else { throw unexpected(result) }
            try add(items)
            if !null { try list.finish() }
            // An empty directory and one that was never listed would look the same.
            if isEmpty.withLock({ $0 }), case .item(let directory) = try await daemon.perform(.info(path: given)),
                directory.content == "dataless"
            {
                Output.complain("\(path): has not been listed yet; 'ls' or 'yonder download' lists it")
            }
        }

        /// The user's marks on an item: favourite rank, tags and last use.
        private static func marks(of item: ItemInformation) -> [String] {
            var marks: [String] = []
            if let rank = item.favoriteRank { marks.append("favourite \(rank)") }
            if let tags = item.tags {
                marks.append("tags " + tags.joined(separator: ", "))
            } else if let data = item.tagData {
                marks.append("tag data of \(data.count) bytes")
            }
            if let time = item.lastUsed { marks.append("used \(time.prefix(19))Z") }
            return marks.isEmpty ? [] : ["[" + marks.joined(separator: "; ") + "]"]
        }

        /// An item's path relative to the listed directory; its whole path if it was the argument.
        private static func name(of item: ItemInformation, below directory: String) -> String {
            let prefix = directory == "/" ? "/" : directory + "/"
            guard item.path.utf8.starts(with: prefix.utf8) else { return item.path }
            return String(Substring(item.path.utf8.dropFirst(prefix.utf8.count)))
        }
    }

    struct Info: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show all information about an item.")

        @OptionGroup var argument: ItemArgument

        func run() async throws {
            let result = try await DaemonConnection().perform(.info(path: argument.path.withSlash))
            guard case .item(let item) = result else { throw unexpected(result) }
            try Output(argument.output).print(item) { Output.table(Self.rows(for: item)) }
        }

        private static func rows(for item: ItemInformation) -> [[String]] {
            var rows = [
                ["path", item.path],
                ["inode", String(item.inode)],
                ["identifier", item.identifier ?? "-"],
                ["kind", item.kind],
                ["size", "\(item.size)"],
                ["modified", item.modified],
                ["mode", item.mode ?? "-"],
                ["owner", item.uid.map(String.init) ?? "-"],
                ["group", item.gid.map(String.init) ?? "-"],
                ["content", item.content],
                ["local bytes", "\(item.localBytes)"],
                ["sync", item.sync],
                ["pending fields", item.pendingFields.isEmpty ? "-" : item.pendingFields.joined(separator: ", ")],
                [
                    "policy",
                    item.policy == item.effectivePolicy ? item.policy : "\(item.policy) (\(item.effectivePolicy))",
                ],
                ["content version", item.contentVersion ?? "-"],
                ["metadata version", item.metadataVersion ?? "-"],
            ]
            if let rank = item.favoriteRank { rows.append(["favourite", "\(rank)"]) }
            if let tags = item.tags {
                rows.append(["tags", tags.joined(separator: ", ")])
            } else if let data = item.tagData {
                rows.append(["tag data", "\(data.count) bytes"])
            }
            if let time = item.lastUsed { rows.append(["last used", time]) }
            if item.isTrashed { rows.append(["trashed from", item.trashParent ?? "-"]) }
            if let error = item.error {
                rows.append(["error", "\(error.message) (\(error.code), \(error.attempts) times)"])
            }
            return rows
        }
    }

    struct Why: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Explain the state of an item: what it waits for, the last errors, and the processes that have it open."
        )

        @OptionGroup var argument: ItemArgument

        func run() async throws {
            let result = try await DaemonConnection().perform(.why(path: argument.path.withSlash))
            guard case .why(let report) = result else { throw unexpected(result) }
            try Output(argument.output).print(report) {
                [report.path] + report.lines.map { "  " + $0 }
            }
        }
    }
}
