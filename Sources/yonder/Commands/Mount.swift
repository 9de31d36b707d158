import ArgumentParser
import Control
import Foundation
import ProviderDescriptors
import Syscalls

extension Yonder {
    struct Mount: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Mount a source on a directory, or a known domain on its last mount point.",
            usage: """
                yonder mount SOURCE DIR [--name NAME] [options]
                yonder mount NAME [options]
                yonder mount --all
                """,
            discussion: """
                SOURCE is \(ProviderDescriptor.allForms). 'yonder providers NAME' lists the options of a kind of source, \
                and the environment variables of this shell that it uses: variables with credentials, certificates and \
                proxies are stored with the domain in a file that only you can read. A password or secret key that the \
                source requires and that is not given is asked for on the terminal. DIR is created if it is missing, \
                and must be empty. Returns when the mount can be used. Mounting a mounted domain again succeeds. Starts \
                the daemon if none runs.

                Options are stored with the domain. For a known domain, given options replace the stored ones and the \
                others stay. They take effect at once on a mounted domain, except --read-only, --allow-other, --dev, \
                --suid, --uid, --gid, --umask and the options of the source, for which it must be unmounted first.
                """)

        @Argument(
            help: ArgumentHelp("The source to mount; without DIR, the name of a known domain.", valueName: "source"),
            completion: .sources)
        var source: String?

        @Argument(help: "The directory to mount on.", completion: .directory)
        var dir: AbsolutePath?

        @Flag(help: "Mount all known domains that are not mounted, each where it was.")
        var all = false

        @Option(help: "The domain's name; derived from the directory by default.")
        var name: String?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "The maximum size of local content, for example 10G; 'none' for no limit.",
                valueName: "size"))
        var cacheLimit: Revocable<ByteCount>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                """
                The interval of polling for changes, if the source does not report them; 'none' polls the directories \
                in use.
                """, valueName: "seconds"))
        var poll: Revocable<Double>?

        @Flag(inversion: .prefixedNo, exclusivity: .exclusive, help: "Refuse every change.")
        var readOnly: Bool?

        @Flag(
            inversion: .prefixedNo, exclusivity: .exclusive,
            help: """
                Allow other users to access the mount, subject to modes and owners. An ordinary user needs the line \
                'user_allow_other' in /etc/fuse.conf.
                """)
        var allowOther: Bool?

        @Flag(
            inversion: .prefixedNo, exclusivity: .exclusive,
            help: "Allow device files in the mount to be opened. For root.")
        var dev: Bool?

        @Flag(
            inversion: .prefixedNo, exclusivity: .exclusive,
            help: "Honour set-user-ID and set-group-ID bits and file capabilities in the mount. For root.")
        var suid: Bool?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "The owner of items whose owner the remote does not say, by name or number; 'none' for you.",
                valueName: "user"))
        var uid: Revocable<AccountNumber<UserNames>>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("Their group, by name or number; 'none' for yours.", valueName: "group"))
        var gid: Revocable<AccountNumber<GroupNames>>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                """
                The permissions that items do not get whose permissions the remote does not say, in octal, for example 077; 'none' \
                for 022.
                """, valueName: "mask"))
        var umask: Revocable<PermissionMask>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "Evict content that has not been opened for this time, for example 30d or 12h; 'none' for never.",
                valueName: "time"))
        var cacheTime: Revocable<TimeSpan>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "The most bytes of content a second to the remote, for example 2M; 'none' for no limit.",
                valueName: "rate"))
        var limitUp: Revocable<ByteRate>?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "The most bytes of content a second from the remote, for example 2M; 'none' for no limit.",
                valueName: "rate"))
        var limitDown: Revocable<ByteRate>?

        @Option(
            help: ArgumentHelp(
                """
                What to do while the network connection is metered, as NetworkManager says: with 'pause' the remote is not called, \
                as after 'yonder pause', until the connection is not metered any more, or 'yonder resume'.
                """, valueName: "pause|ignore"))
        var metered: MeteredReaction?

        @Option(
            help: ArgumentHelp(
                """
                What fsync waits for: the local disk, or also the upload. With 'remote', fsync fails if the remote is \
                unreachable or refuses the upload.
                """, valueName: "local|remote"))
        var fsync: FsyncTarget?

        @Option(
            help: ArgumentHelp(
                "A name pattern that is never uploaded, for example '*.part'. May be repeated. '' removes the stored patterns.",
                valueName: "pattern"))
        var ignore: [String] = []

        @OptionGroup var remote: RemoteOptions

        @Flag(
            help: ArgumentHelp(
                "Move files that are in DIR into the mount.",
                discussion: """
                    They were written there while the domain was not mounted. On a terminal the command asks. A file that the \
                    remote has with another content gets another name.
                    """))
        var moveFound = false

        @Flag(help: "Stay in the foreground until the domain is unmounted; Ctrl-C unmounts it.")
        var foreground = false

        @Flag(name: .shortAndLong, help: "Print only errors and warnings.")
        var quiet = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if case .value(let seconds) = poll, !(seconds >= 1 && seconds <= 86_400) {
                throw ValidationError("--poll takes a number of seconds from 1 to 86400, or 'none'")
            }
            if case .value(let limit) = cacheLimit, let unit = limit.missingUnit {
                throw ValidationError(
                    "--cache-limit \(limit.bytes) would be \(limit.bytes) bytes: give a unit, as in \(unit)")
            }
            guard all || source != nil else { throw ValidationError("Missing expected argument '<source>'") }
            if all {
                guard source == nil, try arguments() == MountArguments(source: nil, directory: nil, name: nil),
                    !foreground, !moveFound
                else { throw ValidationError("--all takes no other options") }
            }
            if source?.isEmpty == true { throw ValidationError("the source is empty") }
            if let source { try SourcePath.refusePassword(in: source) }
            for (flag, rate) in [("--limit-up", limitUp), ("--limit-down", limitDown)] {
                guard case .value(let rate) = rate, rate.bytes < ByteRate.least else { continue }
                throw ValidationError("\(flag) takes at least 32K: servers end slower transfers")
            }
            if dir == nil, name != nil { throw ValidationError("--name needs SOURCE and DIR") }
            if dir != nil, let source { try remote.check(for: source) }
            if let name = ignore.first(where: { $0.contains("/") }) {
                throw ValidationError("--ignore takes a name, and '\(name)' is a path")
            }
        }

        /// The message of this command, without credentials from a terminal.
        func arguments() throws -> MountArguments {
            let place = source.flatMap {
                $0.contains("/") || [".", ".."].contains($0) ? AbsolutePath(argument: $0) : nil
            }
            var arguments = MountArguments(
                source: dir == nil ? nil : try source.map(SourcePath.resolving), directory: (dir ?? place)?.place,
                name: dir == nil ? source : name)
            arguments.link = (dir ?? place).flatMap { $0.itself == $0.text ? nil : $0.itself }
            arguments.cacheLimit = cacheLimit?.given(\.bytes)
            arguments.pollSeconds = poll?.given { $0 }
            arguments.isReadOnly = readOnly
            arguments.cacheSeconds = cacheTime?.given(\.seconds)
            arguments.waitsForRemote = fsync.map { $0 == .remote }
            arguments.ignoredNames = ignore.isEmpty ? nil : ignore.filter { !$0.isEmpty }
            arguments.allowsOthers = allowOther
            arguments.allowsDevices = dev
            arguments.allowsSetID = suid
            arguments.user = uid?.given(\.number)
            arguments.group = gid?.given(\.number)
            arguments.umask = umask?.given(\.bits)
            arguments.upRate = limitUp?.given(\.bytes)
            arguments.downRate = limitDown?.given(\.bytes)
            arguments.pausesWhileMetered = metered.map { $0 == .pause }
            try remote.add(to: &arguments, for: source ?? "")
            return arguments
        }

        func run() async throws {
            guard !all else { return try await mountAll() }
            let arguments = try arguments()
            let daemon = DaemonConnection()
            guard foreground else {
                _ = try await daemon.start()
                if try await mount(arguments, daemon).leavesFiles { throw ExitCode(1) }
                return
            }
            let session = ForegroundMount(daemon)
            // Before the mount becomes visible.
            let interruptions = Interruptions { session.interrupt() }
            defer { interruptions.cancel() }
            do {
                try await session.waitForDaemon()
                _ = try await mount(arguments, daemon) {
                    session.expectUnmount()
                } didMount: {
                    session.didMount(DomainReference(text: $0.name, path: "/"))
                }
                await session.stay()
            } catch {
                await session.end()
                if session.isInterrupted { throw ExitCode(130) }
                throw error
            }
        }

        /// Mounts, and moves files that were found in the directory into the mount.
        ///
        /// - Parameters:
        ///   - willMount: called after the last question.
        ///   - didMount: called as soon as the domain is mounted.
        private func mount(
            _ given: MountArguments, _ daemon: DaemonConnection, willMount: () -> Void = {},
            didMount: (DomainSummary) -> Void = { _ in }
        ) async throws -> (domain: DomainSummary, leavesFiles: Bool) {
            var arguments = given
            let found = await found(arguments, daemon)
            defer { found?.close() }
            if found != nil { arguments.hidesFiles = true }
            willMount()
            let result = try await daemon.perform(
                .mount(arguments),
                afterRefusal: { try remote.completed(arguments, after: $0).map(ControlCommand.mount) })
            guard case .mounted(let domain) = result else { throw unexpected(result) }
            didMount(domain)
            if !quiet { try Output(output).print(domain) { [Self.line(for: domain)] } }
            await showWarnings(of: daemon, domain)
            return (domain, try found.map { try move($0, to: domain) } ?? false)
        }

        /// The files in the directory of a known domain that are to be moved into the mount; nil for none.
        ///
        /// An error of the look-up is not reported: the mount, which may be the way out of a domain that cannot be read, says more.
        private func found(_ arguments: MountArguments, _ daemon: DaemonConnection) async -> FoundFiles? {
            guard moveFound || Question.canBeAsked,
                case .domains(let domains)? = try? await daemon.perform(quietly: .domains),
                let known = domains.first(where: { domain in
                    [
                        (arguments.name, domain.name), (arguments.source, domain.source),
                        (arguments.directory, domain.mountpoint),
                    ].allSatisfy { given, known in given == nil || given == known }
                }), !known.isMounted, let directory = known.mountpoint, let found = FoundFiles(in: directory)
            else { return nil }
            if moveFound { return found }
            let question =
                "'\(directory)' has \(found.description), written while '\(known.name)' was not mounted; "
                + "move what is there into the mount?"
            guard await Question.ask(question) else {
                found.close()
                return nil
            }
            return found
        }

        /// - Returns: whether something was left.
        private func move(_ found: FoundFiles, to domain: DomainSummary) throws -> Bool {
            guard let directory = domain.mountpoint else { return false }
            do {
                let report = try found.move(into: directory)
                for (path, reason) in report.left { Output.complain("\(path): left below the mount: \(reason)") }
                if !quiet, !output.json {
                    Output.write("\(Output.count(report.moved, "file")) moved into the mount\n", to: .standardOutput)
                }
                return !report.left.isEmpty
            } catch {
                Output.complain("\(directory): what was found there cannot be moved into the mount: \(error)")
                return true
            }
        }

        private static func line(for domain: DomainSummary) -> String {
            "'\(domain.name)' is mounted on \(domain.mountpoint ?? "")"
        }

        private static let mostWarnings = 5

        private func showWarnings(of daemon: DaemonConnection, _ domain: DomainSummary) async {
            let status = ControlCommand.status(DomainReference(text: domain.name, path: "/"))
            guard case .status(let report)? = try? await daemon.perform(status) else { return }
            let places = Places(environment: ProcessInfo.processInfo.environment)
            let warnings =
                (report.daemon.otherState(than: places).map { [$0] } ?? []) + (report.daemon.warnings ?? [])
                + report.domains.flatMap(\.warnings)
            for warning in warnings.prefix(Self.mostWarnings) { Output.complain("warning: \(warning)") }
            if warnings.count > Self.mostWarnings {
                let more = Output.count(warnings.count - Self.mostWarnings, "more warning")
                Output.complain("\(more): see 'yonder status'")
            }
        }

        private func mountAll() async throws {
            let daemon = DaemonConnection()
            _ = try await daemon.start()
            // One that was never mounted has no place.
            let (mounted, isComplete) = try await AllDomains(daemon: daemon).perform {
                !$0.isMounted && $0.mountpoint != nil
            } _: { domain in
                let result = try await daemon.perform(
                    .mount(MountArguments(source: nil, directory: nil, name: domain.name)))
                guard case .mounted(let domain) = result else { throw unexpected(result) }
                return domain
            }
            if !quiet { try Output(output).print(mounted) { mounted.map(Self.line) } }
            if !isComplete { throw ExitCode(1) }
        }
    }
}

/// What a domain does while the network connection is metered.
enum MeteredReaction: String, ExpressibleByArgument, CaseIterable {
    case pause
    case ignore
}

/// The durability that `fsync` waits for.
enum FsyncTarget: String, ExpressibleByArgument, CaseIterable {
    case local
    case remote
}
