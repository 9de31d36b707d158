import ArgumentParser
import Control

extension Yonder {
    struct Download: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Download items, directories recursively, and wait.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Option(help: ArgumentHelp("Only this range of one file, in bytes.", valueName: "offset:length"))
        var range: String?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard let range else { return }
            guard Self.parse(range) != nil else {
                throw ValidationError("'\(range)' is not a range: OFFSET:LENGTH, both in bytes, LENGTH at least 1")
            }
            guard paths.count == 1 else { throw ValidationError("--range is for one file") }
        }

        private static func parse(_ range: String) -> (offset: Int64, length: Int64)? {
            let parts = range.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, let offset = Int64(parts[0]), let length = Int64(parts[1]), offset >= 0, length > 0
            else { return nil }
            return (offset, length)
        }

        func run() async throws {
            if let range = range.flatMap(Self.parse), let path = paths.first {
                return try await Transfer(output: output, verb: "downloaded").run(
                    .downloadRange(
                        path: AbsolutePath.resolving(path), offset: range.offset, length: range.length))
            }
            let command = ControlCommand.download(paths: paths.map(AbsolutePath.resolving))
            try await Transfer(output: output, verb: "downloaded").run(command)
        }
    }

    struct Evict: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the local content of items, directories recursively.",
            discussion: "An item that cannot be evicted is reported and skipped; --strict stops at it.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @Flag(help: "Stop at the first item that cannot be evicted.")
        var strict = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let command = ControlCommand.evict(paths: paths.map(AbsolutePath.resolving), isStrict: strict)
            try await Transfer(output: output, verb: "evicted").run(command)
        }
    }
}

extension Yonder {
    struct Pin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Keep items downloaded, directories recursively.",
            discussion: """
                Missing content is downloaded in the background, also of items that are added or changed later; \
                'yonder status' shows the progress. The items are not evicted.
                """)

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let command = ControlCommand.setPolicy(
                paths: paths.map(AbsolutePath.resolving), policy: "keepDownloaded")
            try await Transfer(output: output, verb: "pinned").run(command)
        }
    }

    struct Unpin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reset the policy of items to that of their directory. Local content stays until it is evicted.")

        @Argument(help: "Paths in a mount.", completion: .file())
        var paths: [String]

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let command = ControlCommand.setPolicy(paths: paths.map(AbsolutePath.resolving), policy: "inherited")
            try await Transfer(output: output, verb: "unpinned").run(command)
        }
    }
}

/// Runs a download or an eviction with progress, and prints a summary.
private struct Transfer {
    let output: OutputOptions
    let verb: String

    func run(_ command: ControlCommand) async throws {
        let progress = ProgressLine(verb, options: output)
        let result: ControlResult
        do {
            result = try await DaemonConnection().perform(command) { progress.show($0) }
            progress.clear()
        } catch {
            progress.clear()
            throw error
        }
        guard case .transferred(let summary) = result else { throw unexpected(result) }
        for refusal in summary.refusals { Output.complain("\(refusal.path): \(refusal.reason)") }
        try Output(output).print(summary) {
            let items = Output.count(summary.items, "item")
            return Terminal.isStandardOutput
                ? ["\(verb) \(items)" + (summary.bytes > 0 ? ", \(ByteText.text(summary.bytes))" : "")] : []
        }
        if !summary.refusals.isEmpty { throw ExitCode(1) }
    }
}
