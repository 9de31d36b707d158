import ArgumentParser
import Control

extension Yonder {
    struct Pending: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List pending changes. No output means that everything has been uploaded.",
            discussion: "Domains that are not mounted and have changes are named on standard error.")

        @OptionGroup var domain: DomainArgument

        func run() async throws {
            let list = ListOutput<PendingItem>(Output(domain.output)) { item in
                [Self.words(of: item), item.path]
            } note: { item in
                item.error.map { error in
                    let tries = [
                        error.attempts > 0 ? Output.count(error.attempts, "time") : nil,
                        error.nextTry.map { "next try \($0)" },
                    ].compactMap(\.self)
                    return error.message + (tries.isEmpty ? "" : " (\(tries.joined(separator: ", ")))")
                }
            }
            let daemon = DaemonConnection()
            // Of a domain that is not mounted the daemon knows the number alone.
            if let name = domain.name?.text,
                case let unsent = try await AllDomains(daemon: daemon).unsent(of: name), !unsent.isEmpty
            {
                AllDomains.complain(aboutUnsent: unsent)
                throw ExitCode(69)
            }
            let result = try await daemon.perform(
                .pending(domain.name),
                onPart: { part in if case .pending(let items) = part { try list.add(items) } })
            guard case .pending(let items) = result else { throw unexpected(result) }
            try list.add(items)
            try list.finish()
            guard domain.name == nil else { return }
            AllDomains.complain(aboutUnsent: try await AllDomains(daemon: daemon).unsent())
        }

        private static func words(of item: PendingItem) -> String {
            if item.identifier == nil, item.fields.contains("filename") { return "new" }
            return PendingItem.words(for: item.fields).joined(separator: ",")
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Wait until all changes that are pending now have been uploaded.",
            discussion: """
                With a path in a mount, waits for the changes at and below it. Without a domain, the exit status is 1 if one that is \
                not mounted has changes. With --downloads, the exit status is 1 if some content cannot be downloaded now.
                """)

        @Argument(help: "The domain's name, or a path in its mount; all mounted domains by default.")
        var name: DomainReference?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("The timeout; the exit status is then 75.", valueName: "seconds"))
        var timeout: Double?

        @Flag(help: "Also wait until what is kept on this machine is downloaded, and running downloads have ended.")
        var downloads = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard timeout.map({ $0.isFinite && $0 >= 0 }) ?? true else {
                throw ValidationError("--timeout takes a number of seconds, such as 30")
            }
        }

        func run() async throws {
            let daemon = DaemonConnection()
            let result = try await daemon.perform(
                .wait(name, seconds: timeout, downloads: downloads),
                onEvent: { event in
                    if ["offline", "failed"].contains(event.kind) { Output.complain(event.path) }
                })
            if case .timedOut = result {
                try Output(output).print(WaitReport(hasTimedOut: true)) { [] }
                throw Output.failure(
                    downloads
                        ? "changes or downloads are still pending; 'yonder pending' and 'yonder status' list them"
                        : "changes are still pending; 'yonder pending' lists them with the reasons", exit: 75)
            }
            var report = WaitReport(hasTimedOut: false)
            if name == nil { report.unsent = try await AllDomains(daemon: daemon).unsent() }
            if case .transferred(let summary) = result { report.refusals = summary.refusals }
            try Output(output).print(report) { [] }
            AllDomains.complain(aboutUnsent: report.unsent)
            try Output.complain(about: report.refusals)
            if !report.unsent.isEmpty { throw ExitCode(1) }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Retry all waiting changes now.")

        @Argument(help: "The domain's name, or a path in its mount for one item; all mounted domains by default.")
        var name: DomainReference?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let daemon = DaemonConnection()
            _ = try await daemon.perform(.retry(name))
            guard output.json else { return }
            let result = try await daemon.perform(.status(name))
            guard case .status(let report) = result else { throw unexpected(result) }
            try Output(output).print(report.domains.map(RetryReport.init)) { [] }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make no calls to the remote until 'yonder resume'. Local work continues.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @OptionGroup var output: OutputOptions

        func run() async throws { try await Yonder.pause(true, name, output) }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Continue after 'yonder pause'.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @OptionGroup var output: OutputOptions

        func run() async throws { try await Yonder.pause(false, name, output) }
    }

    private static func pause(_ isPaused: Bool, _ domain: DomainReference, _ output: OutputOptions) async throws {
        let daemon = DaemonConnection()
        _ = try await daemon.perform(isPaused ? .pause(domain) : .resume(domain))
        guard output.json else { return }
        // The command may have named it by a path.
        let result = try await daemon.perform(.show(domain))
        guard case .options(let report) = result else { throw unexpected(result) }
        try Output(output).print(PauseReport(name: report.name, isPaused: isPaused)) { [] }
    }

    struct Allow: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Raise the fetch budget of a process that has reached its limit.",
            discussion: """
                The configuration's process-budget limits how much the reads of a process may fetch; 'yonder status' \
                shows the processes with the most fetched bytes.
                """)

        @Argument(help: ArgumentHelp("The process ID.", valueName: "pid"))
        var process: Int32

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("How much more, for example 5G; the configured budget by default.", valueName: "size"))
        var bytes: ByteCount?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if process <= 0 { throw ValidationError("\(process) is no process ID") }
            if bytes?.bytes == 0 { throw ValidationError("--bytes takes at least 1 byte") }
        }

        func run() async throws {
            let result = try await DaemonConnection().perform(.allow(process: process, bytes: bytes?.bytes))
            guard case .allowed(let reader) = result else { throw unexpected(result) }
            try Output(output).print(reader) {
                let limit = reader.limit.map { "up to \(ByteText.text($0))" } ?? "any amount"
                return [
                    "\(reader.name) (pid \(reader.process)) has fetched \(ByteText.text(reader.fetched)) and may "
                        + "fetch \(limit)"
                ]
            }
        }
    }

    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the existing conflict copies with their original files.")

        @OptionGroup var domain: DomainArgument

        func run() async throws {
            let result = try await DaemonConnection().perform(.conflicts(domain.name))
            guard case .conflicts(let copies) = result else { throw unexpected(result) }
            try Output(domain.output).print(copies) {
                copies.flatMap { [$0.path, "  beside \($0.original)"] }
            }
        }
    }

    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show events as they happen, until Ctrl-C or the end of the daemon.",
            discussion: "Without NAME, also those of domains that are mounted later.")

        @OptionGroup var domain: DomainArgument

        func run() async throws {
            let output = Output(domain.output)
            _ = try await DaemonConnection().perform(.events(domain.name)) { event in
                try? output.printLine(event) {
                    "\(event.time ?? "")  \(event.kind ?? "")  \(event.path)"
                        + (event.bytes > 0 ? "  \(ByteText.text(event.bytes))" : "")
                        + (event.process.map { "  for \($0)" } ?? "")
                }
                Output.endWithoutReader()
            }
        }
    }
}
