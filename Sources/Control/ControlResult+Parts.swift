/// Results that may be too long for one message: `ControlServer` sends them in parts, and `ControlClient` joins these.
extension ControlResult {
    /// The result in parts. The last one is the result without the elements of the others.
    var parts: [ControlResult] {
        switch self {
        case .items(var rest): return rest.cut().map(Self.items) + [.items(rest)]
        case .pending(var rest): return rest.cut().map(Self.pending) + [.pending(rest)]
        case .conflicts(var rest): return rest.cut().map(Self.conflicts) + [.conflicts(rest)]
        case .transferred(var rest):
            let refusals = rest.refusals.cut()
            return refusals.map { ControlResult.transferred(TransferSummary(refusals: $0)) } + [.transferred(rest)]
        case .changed(var rest): return rest.cut().map(Self.changed) + [.changed(rest)]
        case .trash(var rest): return rest.cut().map(Self.trash) + [.trash(rest)]
        case .checked(var rest):
            let empty = rest.map { CheckReport(name: $0.name) }
            var parts: [ControlResult] = []
            for index in rest.indices {
                for problems in rest[index].problems.cut() {
                    var part = empty
                    part[index].problems = problems
                    parts.append(.checked(part))
                }
            }
            return parts + [.checked(rest)]
        case .imported(var rest):
            var part = rest
            let parts = rest.left.cut().map { left in
                part.left = left
                return ControlResult.imported(part)
            }
            return parts + [.imported(rest)]
        default: return [self]
        }
    }

    /// The whole result, of which this is the last part.
    ///
    /// - Parameter parts: the others, in order.
    func joined(after parts: [ControlResult]) -> ControlResult {
        guard !parts.isEmpty else { return self }
        switch self {
        case .items(let rest):
            var all: [ItemInformation] = []
            for case .items(let part) in parts { all += part }
            return .items(all + rest)
        case .pending(let rest):
            var all: [PendingItem] = []
            for case .pending(let part) in parts { all += part }
            return .pending(all + rest)
        case .conflicts(let rest):
            var all: [ConflictCopy] = []
            for case .conflicts(let part) in parts { all += part }
            return .conflicts(all + rest)
        case .transferred(var rest):
            var all: [Refusal] = []
            for case .transferred(let part) in parts { all += part.refusals }
            rest.refusals = all + rest.refusals
            return .transferred(rest)
        case .changed(let rest):
            var all = ItemsReport<ItemInformation>()
            for case .changed(let part) in parts { all.append(part) }
            all.append(rest)
            return .changed(all)
        case .trash(let rest):
            var all = ItemsReport<TrashedItem>()
            for case .trash(let part) in parts { all.append(part) }
            all.append(rest)
            return .trash(all)
        case .checked(var rest):
            var all: [[CheckReport.Problem]] = rest.map { _ in [] }
            for case .checked(let part) in parts {
                for (index, report) in part.enumerated() where index < all.count { all[index] += report.problems }
            }
            for index in rest.indices { rest[index].problems = all[index] + rest[index].problems }
            return .checked(rest)
        case .imported(var rest):
            var all: [String] = []
            for case .imported(let part) in parts { all += part.left }
            rest.left = all + rest.left
            return .imported(rest)
        default: return self
        }
    }
}

extension Array {
    /// The most elements of a part: with three paths of 4096 bytes each, all of them escaped, it fits into one message.
    private static var partSize: Int { 200 }

    /// Removes the first elements, as many as are too many for the last part.
    ///
    /// - Returns: them, in pieces for a part each.
    fileprivate mutating func cut() -> [[Element]] {
        var pieces: [[Element]] = []
        var first = 0
        while count - first > Self.partSize {
            pieces.append(Array(self[first..<first + Self.partSize]))
            first += Self.partSize
        }
        removeFirst(first)
        return pieces
    }
}

extension ItemsReport {
    private init(items: [Item] = [], refusals: [Refusal] = []) {
        self.init()
        self.items = items
        self.refusals = refusals
    }

    /// As the other, of both lists.
    fileprivate mutating func cut() -> [ItemsReport] {
        let parts = items.cut().map { ItemsReport(items: $0) }
        return parts + refusals.cut().map { ItemsReport(refusals: $0) }
    }

    fileprivate mutating func append(_ other: ItemsReport) {
        items += other.items
        refusals += other.refusals
    }
}
