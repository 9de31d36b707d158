import ArgumentParser
import Control

extension Yonder {
    struct Pending: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List what the remote has not got yet. Nothing printed means that all is there.")

        @Argument(help: "The domain's name, or a path in its mount; all mounted domains without it.")
        var name: String?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let list = ListOutput<PendingItem>(Output(output)) { item in
                let reason = item.error.map { error in
                    let tries = [
                        error.attempts > 0 ? "\(error.attempts) times" : nil,
                        error.nextTry.map { "next try \($0)" },
                    ].compactMap(\.self)
                    return error.message + (tries.isEmpty ? "" : " (\(tries.joined(separator: ", ")))")
                }
                return [item.fields.joined(separator: ","), Output.shown(item.path)]
                    + (reason.map { [Output.shown($0)] } ?? [])
            }
            let result = try await DaemonConnection().perform(
                .pending(name.map { DomainReference($0) }),
                onPart: { part in if case .pending(let items) = part { try list.add(items) } })
            guard case .pending(let items) = result else { throw unexpected(result) }
            try list.add(items)
            try list.finish()
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Wait until everything that is pending now is on the remote.",
            discussion: "With a path in a mount, what is pending at and below it.")

        @Argument(help: "The domain's name, or a path in its mount; all mounted domains without it.")
        var name: String?

        @Option(help: ArgumentHelp("Give up after so long; the exit status is 75 then.", valueName: "seconds"))
        var timeout: Double?

        @Flag(help: "Wait for downloads that are under way, too.")
        var downloads = false

        func run() async throws {
            let result = try await DaemonConnection().perform(
                .wait(name.map { DomainReference($0) }, seconds: timeout, downloads: downloads))
            if case .timedOut = result {
                Output.complain("something is still pending; 'yonder pending' says what and why")
                throw ExitCode(75)
            }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Try everything that waits now.")

        @Argument(help: "The domain's name, or a path in its mount for one item; all mounted domains without it.")
        var name: String?

        func run() async throws {
            _ = try await DaemonConnection().perform(.retry(name.map { DomainReference($0) }))
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Leave the remote alone until 'yonder resume'. Local work goes on.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: String

        func run() async throws {
            _ = try await DaemonConnection().perform(.pause(DomainReference(name)))
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Go on after 'yonder pause'.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: String

        func run() async throws {
            _ = try await DaemonConnection().perform(.resume(DomainReference(name)))
        }
    }

    struct Allow: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let a process have more fetched that has had as much as a process may.",
            discussion: """
                The configuration's process-budget says how much a process may have fetched by reading; 'yonder status' \
                shows who had how much.
                """)

        @Argument(help: ArgumentHelp("The process's number.", valueName: "pid"))
        var process: Int32

        @Option(
            help: ArgumentHelp("How much more, such as 5G. Without it, the usual budget once more.", valueName: "size"))
        var bytes: ByteCount?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let result = try await DaemonConnection().perform(.allow(process: process, bytes: bytes?.bytes))
            guard case .allowed(let reader) = result else { throw unexpected(result) }
            try Output(output).print(reader) {
                let limit = reader.limit.map { "up to \(ByteText.text($0))" } ?? "as much as it likes"
                return [
                    "\(Output.shown(reader.name)) (pid \(reader.process)) has had \(ByteText.text(reader.fetched)) and may "
                        + "have \(limit)"
                ]
            }
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the conflict copies that still exist, with the files they are copies of.")

        @Argument(help: "The domain's name, or a path in its mount; all mounted domains without it.")
        var name: String?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let result = try await DaemonConnection().perform(.conflicts(name.map { DomainReference($0) }))
            guard case .conflicts(let copies) = result else { throw unexpected(result) }
            try Output(output).print(copies) {
                copies.map { "\(Output.shown($0.path))\n  beside \(Output.shown($0.original))" }
            }
        }
    }

    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what happens, as it happens, until Ctrl-C.")

        @Argument(help: "The domain's name, or a path in its mount; all mounted domains without it.")
        var name: String?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let output = output
            _ = try await DaemonConnection().perform(.events(name.map { DomainReference($0) })) { event in
                try? Output(output).printLine(event) {
                    "\(event.time ?? "")  \(event.kind ?? "")  \(Output.shown(event.path))"
                        + (event.bytes > 0 ? "  \(ByteText.text(event.bytes))" : "")
                        + (event.process.map { "  for \(Output.shown($0))" } ?? "")
                }
            }
        }
    }
}
