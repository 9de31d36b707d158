import ArgumentParser
import Control
import Foundation
import Syscalls
import SystemPackage

extension Yonder {
    struct Top: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Watch transfers, processes and domains, and act on them by keys.",
            discussion: """
                Keys: q quits, the arrows choose a domain, p pauses or resumes it, r retries what failed, and e evicts all content \
                that can be spared, after a question. Without a terminal, or with --json, it prints one report and ends.
                """)

        @OptionGroup var output: OutputOptions

        private static let pause = Duration.seconds(1)
        private static let pauseBetweenAges = Duration.seconds(10)

        func run() async throws {
            let places = Places(environment: ProcessInfo.processInfo.environment).ofRunningDaemon
            let client = ControlClient(socket: places.socket)
            guard !output.json, Terminal.isStandardOutput, Terminal.isStandardInput,
                let mode = TerminalMode(ofKeysOn: FileDescriptor.standardInput.rawValue, leaving: Self.leave)
            else { return try await printOnce() }
            defer { mode.restore() }
            Output.write(Self.enter, to: .standardOutput)
            var model = TopModel()
            var nextAges = ContinuousClock.now
            let (keys, pressed) = AsyncStream.makeStream(of: TopEvent.self)
            let reading = Thread { Self.read(pressed) }
            reading.start()
            let ticking = Task {
                while !Task.isCancelled {
                    pressed.yield(.tick)
                    try? await Task.sleep(for: Self.pause)
                }
            }
            defer { ticking.cancel() }
            for await event in keys {
                switch event {
                case .end: return
                case .tick:
                    await look(client, &model)
                    if ContinuousClock.now >= nextAges {
                        nextAges = .now + Self.pauseBetweenAges
                        if case .contentAges(let ages) = try? await client.perform(.contentAges(nil)) {
                            model.show(ages)
                        }
                    }
                case .key(let key):
                    switch model.press(key) {
                    case .quit: return
                    case nil: break
                    case let action?:
                        await perform(action, client, &model)
                        await look(client, &model)
                        nextAges = .now
                    }
                }
                draw(model)
            }
        }

        private enum TopEvent: Sendable {
            case tick
            case key(TopKey)
            /// Nothing can be typed any more.
            case end
        }

        /// The other screen of the terminal, without a cursor, and back.
        private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
        private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

        /// Blocks a thread of its own: keys come when they come.
        private static func read(_ pressed: AsyncStream<TopEvent>.Continuation) {
            while case let bytes = FileHandle.standardInput.availableData, !bytes.isEmpty {
                for key in TopKey.keys(in: [UInt8](bytes)) { pressed.yield(.key(key)) }
            }
            pressed.yield(.end)
        }

        private func printOnce() async throws {
            let result = try await DaemonConnection().perform(.status(nil))
            guard case .status(let report) = result else { throw unexpected(result) }
            var model = TopModel()
            model.show(report, at: .now)
            try Output(output).print(report) {
                TopScreen(model: model, columns: 1 << 16, rows: 1 << 16).lines.dropLast() + []
            }
        }

        private func look(_ client: ControlClient, _ model: inout TopModel) async {
            do {
                guard case .status(let report) = try await client.perform(.status(nil)) else { return }
                if model.report == nil { model.message = nil }
                model.show(report, at: .now)
            } catch {
                model.lose((error as? ControlError)?.message ?? "\(error)")
            }
        }

        private func perform(_ action: TopModel.Action, _ client: ControlClient, _ model: inout TopModel) async {
            do {
                switch action {
                case .quit: break
                case .pause(let name): _ = try await client.perform(.pause(Self.reference(name)))
                case .resume(let name): _ = try await client.perform(.resume(Self.reference(name)))
                case .retry(let name):
                    _ = try await client.perform(.retry(Self.reference(name)))
                    model.message = "retrying what failed of \(name)"
                case .evict(let name):
                    guard let path = model.report?.domains.first(where: { $0.name == name })?.mountpoint,
                        case .transferred(let summary) = try await client.perform(
                            .evict(paths: [path], isStrict: false))
                    else { return }
                    let refused = summary.refusals.isEmpty ? "" : ", \(summary.refusals.count) refused"
                    model.message = "freed \(ByteText.text(summary.bytes)) of \(name)" + refused
                }
            } catch {
                model.message = (error as? ControlError)?.description ?? "\(error)"
            }
        }

        private static func reference(_ name: String) -> DomainReference { DomainReference(text: name, path: name) }

        private func draw(_ model: TopModel) {
            let screen = TopScreen(
                model: model, columns: FileDescriptor.standardOutput.columns ?? 80,
                rows: FileDescriptor.standardOutput.rows ?? 24)
            // Each line is written over the old one: clearing the whole screen first would flicker.
            let text = screen.lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
            Output.write("\u{1B}[H" + text + "\u{1B}[J", to: .standardOutput)
        }
    }
}
