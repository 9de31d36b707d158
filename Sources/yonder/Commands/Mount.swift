import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Mount: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Mount a source on a directory, or a known domain where it was.",
            usage: """
                yonder mount SOURCE DIR [--name NAME] [options]
                yonder mount NAME [options]
                """,
            discussion: """
                SOURCE is the path of a folder, webdav://HOST/PATH or webdavs://HOST/PATH, with USER@ before the HOST \
                where one is wanted, or s3://BUCKET/PREFIX. Credentials come from ~/.netrc or by --password-stdin; for S3 \
                from the AWS_… variables, or from ~/.aws. These variables, and those that name certificates and proxies \
                (SSL_CERT_FILE, https_proxy and the like), are kept with the domain in a file that only you can read. \
                DIR is made when it is missing, and must be empty. Returns when the \
                mount can be used; doing it twice is fine. Starts the daemon if none runs.

                What the options say is kept with the domain: on one that is known, those that are given replace what \
                was said before, and the others stay. They hold at once on one that is mounted, but for \
                --read-only, --allow-other, --dev, --suid and those of S3, for which it has to be unmounted first.
                """)

        @Argument(
            help: ArgumentHelp("What to mount; alone, a known domain's name.", valueName: "source"),
            completion: .directory)
        var source: String

        @Argument(help: "Where to mount it.", completion: .directory)
        var dir: String?

        @Option(help: "The domain's name. Without it, one made of the directory's name.")
        var name: String?

        @Option(
            help: ArgumentHelp(
                "How much content may be kept here, such as 10G; 'none' for as much as the disk holds.",
                valueName: "size"))
        var cacheLimit: Revocable<ByteCount>?

        @Option(
            help: ArgumentHelp(
                """
                Look for changes this often, where the source does not tell of them; 'none' for as often as somebody \
                looks at the mount.
                """, valueName: "seconds"))
        var poll: Revocable<Double>?

        @Flag(inversion: .prefixedNo, help: "Let nobody change anything.")
        var readOnly: Bool?

        @Flag(
            inversion: .prefixedNo,
            help: """
                Let other users use the mount, as far as modes and owners let them. An ordinary user needs a line \
                'user_allow_other' in /etc/fuse.conf.
                """)
        var allowOther: Bool?

        @Flag(inversion: .prefixedNo, help: "Let device files in the mount be opened. For root.")
        var dev: Bool?

        @Flag(
            inversion: .prefixedNo,
            help: "Let set-user-ID and set-group-ID bits and file capabilities in the mount count. For root.")
        var suid: Bool?

        @Option(
            help: ArgumentHelp(
                "Give up content that nobody has opened for so long, such as 30d or 12h; 'none' for never.",
                valueName: "time"))
        var cacheTime: Revocable<TimeSpan>?

        @Option(
            help: ArgumentHelp(
                """
                What fsync waits for: the local disk, or the remote's answer, too. fsync fails then when the remote \
                cannot be reached or refuses.
                """, valueName: "local|remote"))
        var fsync: FsyncTarget?

        @Option(
            help: ArgumentHelp(
                "A name that is never sent, such as '*.part'; may be given several times. '' for none of before.",
                valueName: "pattern"))
        var ignore: [String] = []

        @OptionGroup var remote: RemoteOptions

        @Flag(help: "Stay until the domain is unmounted; Ctrl-C unmounts it.")
        var foreground = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if case .value(let seconds) = poll, !(seconds >= 1 && seconds <= 86_400) {
                throw ValidationError("--poll takes a number of seconds from 1 to 86400, or 'none'")
            }
            if dir == nil, name != nil { throw ValidationError("--name needs SOURCE and DIR") }
            if dir != nil { try remote.check(for: source) }
            if let name = ignore.first(where: { $0.contains("/") }) {
                throw ValidationError("--ignore takes a name, and '\(name)' is a path")
            }
        }

        func run() async throws {
            let options = try remote.sourceOptions(for: source)
            let arguments = MountArguments(
                source: dir == nil ? nil : try SourcePath.resolving(source), directory: dir.map(AbsolutePath.resolving),
                name: dir == nil ? source : name, cacheLimit: cacheLimit?.given(\.bytes),
                pollSeconds: poll?.given { $0 }, isReadOnly: readOnly, cacheSeconds: cacheTime?.given(\.seconds),
                waitsForRemote: fsync.map { $0 == .remote },
                ignoredNames: ignore.isEmpty ? nil : ignore.filter { !$0.isEmpty }, allowsOthers: allowOther,
                allowsDevices: dev, allowsSetID: suid, credentials: options.credentials,
                objectStore: options.objectStore)
            let daemon = DaemonConnection()
            // Before the mount becomes visible.
            let interruptions = foreground ? Interruptions() : nil
            let process = try await daemon.start(inForeground: foreground)
            let result = try await daemon.perform(.mount(arguments))
            guard case .mounted(let domain) = result else { throw unexpected(result) }
            try Output(output).print(domain) {
                ["'\(Output.shown(domain.name))' is mounted on \(Output.shown(domain.mountpoint ?? ""))"]
            }
            guard let interruptions else { return }
            await stay(with: domain.name, daemon, process, until: interruptions)
        }

        /// Waits until the domain is unmounted, and unmounts it on SIGINT or SIGTERM.
        private func stay(
            with name: String, _ daemon: DaemonConnection, _ process: Process?, until interruptions: Interruptions
        ) async {
            let signals = interruptions.all
            let ending = Task {
                for await _ in signals { _ = try? await daemon.perform(.unmount(DomainReference(name))) }
            }
            _ = try? await daemon.perform(.follow(DomainReference(text: name, path: "/")))
            ending.cancel()
            // A daemon that was started for this mount ends with it.
            if process != nil { _ = try? await daemon.perform(.shutdown) }
            process?.waitUntilExit()
        }
    }
}

/// SIGINT and SIGTERM as a stream. A second signal before the first is handled ends the process.
private final class Interruptions {
    let all: AsyncStream<Void>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (all, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.all = all
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if case .dropped = continuation.yield() { exit(130) }
            }
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
    }
}

/// The durability that `fsync` waits for.
enum FsyncTarget: String, ExpressibleByArgument {
    case local
    case remote
}
