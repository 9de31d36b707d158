import Control

/// What `yonder top` shows, from one look at the daemon to the next.
struct TopModel {
    /// What a key asks for.
    enum Action: Hashable {
        case quit
        case pause(String)
        case resume(String)
        case retry(String)
        case evict(String)
    }

    /// What has a rate.
    private enum Subject: Hashable {
        case received(String)
        case sent(String)
        case transfer(String, direction: String)
        case reader(Int32)
    }

    private(set) var report: StatusReport?
    private(set) var ages: [String: ContentAges] = [:]
    /// The number of the domain that keys are for.
    private(set) var selection = 0
    /// The domain whose content is to be evicted when the user says yes.
    private(set) var question: String?
    /// What came of the last action, or why nothing is shown.
    var message: String?
    private var rates: [Subject: TransferRate] = [:]
    private var values: [Subject: Int64] = [:]

    var selected: DomainStatus? {
        guard let domains = report?.domains, domains.indices.contains(selection) else { return nil }
        return domains[selection]
    }

    /// - Parameter now: the time of the report.
    mutating func show(_ report: StatusReport, at now: ContinuousClock.Instant) {
        let name = selected?.name
        self.report = report
        // The same domain stays selected when another is mounted.
        selection = report.domains.firstIndex { $0.name == name } ?? min(selection, max(0, report.domains.count - 1))
        if let question, !report.domains.contains(where: { $0.name == question }) { self.question = nil }
        var measured: Set<Subject> = []
        func note(_ subject: Subject, _ bytes: Int64) {
            measured.insert(subject)
            values[subject] = rates[subject, default: TransferRate()].perSecond(bytes, at: now)
        }
        for domain in report.domains {
            note(.received(domain.name), domain.received ?? 0)
            note(.sent(domain.name), domain.sent ?? 0)
            for transfer in domain.transfers {
                note(.transfer(transfer.path, direction: transfer.direction), transfer.done)
            }
        }
        for reader in report.readers { note(.reader(reader.process), reader.fetched) }
        rates = rates.filter { measured.contains($0.key) }
        values = values.filter { measured.contains($0.key) }
    }

    mutating func show(_ ages: [ContentAges]) {
        self.ages = Dictionary(ages.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    }

    /// The daemon does not answer.
    mutating func lose(_ reason: String) {
        report = nil
        question = nil
        (rates, values) = ([:], [:])
        message = reason
    }

    // MARK: - Rates, in bytes per second; nil while they are unknown

    func received(_ domain: DomainStatus) -> Int64? { values[.received(domain.name)] }
    func sent(_ domain: DomainStatus) -> Int64? { values[.sent(domain.name)] }
    func rate(_ reader: ReaderStatus) -> Int64? { values[.reader(reader.process)] }

    func rate(_ transfer: DomainStatus.Transfer) -> Int64? {
        values[.transfer(transfer.path, direction: transfer.direction)]
    }

    // MARK: - Keys

    /// - Returns: what is to be done; nil for nothing.
    mutating func press(_ key: TopKey) -> Action? {
        if let name = question {
            question = nil
            return key == .character("y") ? .evict(name) : nil
        }
        message = nil
        switch key {
        case .character("q"), .interrupt: return .quit
        case .up, .character("k"): selection = max(0, selection - 1)
        case .down, .character("j"): selection = max(0, min((report?.domains.count ?? 0) - 1, selection + 1))
        case .character("p"):
            return selected.map { $0.connection == .paused ? .resume($0.name) : .pause($0.name) }
        case .character("r"): return selected.map { .retry($0.name) }
        case .character("e"): question = selected?.name
        case .character: break
        }
        return nil
    }
}

enum TopKey: Hashable {
    case character(Character)
    case up
    case down
    case interrupt

    /// The keys in what a terminal has sent. Other control sequences count as none.
    static func keys(in bytes: [UInt8]) -> [TopKey] {
        var keys: [TopKey] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            switch byte {
            // Ctrl-C, Ctrl-D and Ctrl-\.
            case 0x03, 0x04, 0x1C: keys.append(.interrupt)
            case 0x1B:
                guard let kind = rest.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else { continue }
                rest.removeFirst()
                let end = rest.firstIndex { (0x40...0x7E).contains($0) } ?? rest.endIndex
                if end == rest.startIndex, rest.first == UInt8(ascii: "A") { keys.append(.up) }
                if end == rest.startIndex, rest.first == UInt8(ascii: "B") { keys.append(.down) }
                rest = rest.dropFirst(end - rest.startIndex + 1)
            case 0x21...0x7E: keys.append(.character(Character(UnicodeScalar(byte))))
            default: continue
            }
        }
        return keys
    }
}
