import Control

/// The lines of `yonder top` on a terminal of a given size.
struct TopScreen {
    let model: TopModel
    let columns: Int
    let rows: Int

    private static let keys = "q quit  ↑↓ domain  p pause or resume  r retry  e free up space"

    /// Exactly as many lines as there are rows, or fewer; none is longer than the terminal is wide.
    var lines: [String] {
        var lines = body.map(fitted)
        let footer = [fitted(footerText)]
        // The keys are always there; what is below them is cut.
        lines = Array(lines.prefix(max(0, rows - footer.count)))
        return lines + footer
    }

    private var footerText: String {
        if let domain = model.question { return "Free up the space of all that can be spared of \(domain)? y/n" }
        return model.message ?? Self.keys
    }

    private var body: [String] {
        guard let report = model.report else { return [] }
        guard !report.domains.isEmpty else { return ["no domain is mounted"] }
        var lines = domains(report.domains)
        let transfers = report.domains.flatMap(\.transfers)
        if !transfers.isEmpty { lines += ["", "TRANSFERS"] + self.transfers(transfers) }
        if !report.readers.isEmpty { lines += ["", "PROCESSES"] + readers(report.readers) }
        if let selected = model.selected { lines += details(selected) }
        return lines
    }

    private func domains(_ domains: [DomainStatus]) -> [String] {
        let rows = domains.enumerated().map { number, domain in
            [
                (number == model.selection ? "> " : "  ") + domain.name, domain.connection.rawValue,
                ByteText.text(domain.bytes.local) + (domain.bytes.limit.map { " of \(ByteText.text($0))" } ?? ""),
                "\(domain.pending.items)", "\(domain.failed)", speed(model.received(domain)),
                speed(model.sent(domain)),
            ]
        }
        return Output.table([["  DOMAIN", "CONNECTION", "LOCAL", "PENDING", "FAILED", "DOWN", "UP"]] + rows)
    }

    private func transfers(_ transfers: [DomainStatus.Transfer]) -> [String] {
        Output.table(
            transfers.map { transfer in
                let percent = ByteText.percent(transfer.done, of: transfer.total)
                return [
                    transfer.direction == "upload" ? "  up" : "  down", "\(percent) %", ByteText.text(transfer.total),
                    speed(model.rate(transfer)), transfer.path,
                ]
            })
    }

    private func readers(_ readers: [ReaderStatus]) -> [String] {
        Output.table(
            readers.map { reader in
                [
                    "  \(reader.process)", ByteText.text(reader.fetched), speed(model.rate(reader)),
                    reader.isRefused ? "over its budget" : "", reader.name,
                ]
            })
    }

    /// What the table of domains has no room for.
    private func details(_ domain: DomainStatus) -> [String] {
        var lines = ["", domain.name]
        if let ages = model.ages[domain.name] {
            let parts = zip(ContentAges.names, ages.bytes).map { "\($0) \(ByteText.text($1))" }
            lines.append("  local content by last use: " + parts.joined(separator: ", "))
        }
        lines.append(
            "  pending \(ByteText.text(domain.pending.bytes)); \(domain.items.known) items, "
                + "\(Output.count(domain.items.materializedFiles, "file")) here")
        if let reason = domain.reason { lines.append("  \(domain.connection.rawValue): \(reason)") }
        return lines + domain.warnings.map { "  warning: \($0)" }
    }

    private func speed(_ rate: Int64?) -> String {
        guard let rate, rate > 0 else { return "-" }
        return ByteText.text(rate) + "/s"
    }

    /// A line without control characters that does not reach the last column: some terminals begin another line there.
    private func fitted(_ line: String) -> String {
        String(LineText.escaped(line).prefix(max(0, columns - 1)))
    }
}
