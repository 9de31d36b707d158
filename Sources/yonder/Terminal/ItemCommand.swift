import ArgumentParser
import Control

/// A command that changes, downloads or evicts items. It prints what was done on a terminal, and a line for each refused
/// item, with exit status 1.
protocol ItemCommand: AsyncParsableCommand {
    /// The action, for example `downloaded`.
    var verb: String { get }
    var request: ControlCommand { get }
    var output: OutputOptions { get }
}

protocol ItemListCommand: ItemCommand {
    var items: ItemArguments { get }
}

extension ItemListCommand {
    var output: OutputOptions { items.output }
}

extension ItemCommand {
    func run() async throws {
        let result = try await DaemonConnection().perform(request, showing: ProgressLine(verb, options: output))
        switch result {
        case .changed(let report): try finish(report, report.items.map { done($0.path) }, report.refusals)
        case .trash(let report): try finish(report, report.items.map { done($0.path) }, report.refusals)
        case .transferred(let summary):
            let size = summary.bytes > 0 ? ", \(ByteText.text(summary.bytes))" : ""
            let local = summary.alreadyLocal ?? []
            let lines = summary.items == 0 && !local.isEmpty ? [] : [done(Output.count(summary.items, "item") + size)]
            let listed = (summary.stillListed ?? []).map {
                "\($0) stays listed: it holds items that exist on this machine only and are never uploaded"
            }
            try finish(
                summary, lines + local.map { "\($0) is already on this machine" } + listed, summary.refusals)
        default: throw unexpected(result)
        }
    }

    private func done(_ what: String) -> String { "\(verb) \(what)" }

    private func finish(_ report: some Encodable, _ lines: [String], _ refusals: [Refusal]) throws {
        try Output(output).print(report) { Terminal.isStandardOutput ? lines : [] }
        try Output.complain(about: refusals)
    }
}
