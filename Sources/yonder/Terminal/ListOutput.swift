import Foundation
import Synchronization

/// Prints a list that arrives in parts: as a table whose columns may grow, or as one JSON array.
final class ListOutput<Element: Encodable & Sendable>: Sendable {
    private struct State {
        var isBegun = false
        var widths: [Int] = []
    }

    private let output: Output
    private let row: @Sendable (Element) -> [String]
    private let state = Mutex(State())

    /// - Parameter row: the columns of an element.
    init(_ output: Output, row: @escaping @Sendable (Element) -> [String]) {
        self.output = output
        self.row = row
    }

    func add(_ elements: [Element]) throws {
        guard !elements.isEmpty else { return }
        if output.isJSON {
            try addJSON(elements)
        } else {
            addTable(elements.map(row))
        }
    }

    /// Ends the list.
    func finish() throws {
        guard output.isJSON else { return }
        let isBegun = state.withLock { $0.isBegun }
        Output.write(isBegun ? "\n]\n" : "[]\n", to: .standardOutput)
    }

    private func addJSON(_ elements: [Element]) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let isFirst = state.withLock { state in
            defer { state.isBegun = true }
            return !state.isBegun
        }
        let text = try elements.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
        Output.writeJSON((isFirst ? "[\n" : ",\n") + text.joined(separator: ",\n"))
    }

    private func addTable(_ rows: [[String]]) {
        let widths = state.withLock { state in
            for row in rows {
                for (column, text) in row.enumerated() {
                    if column == state.widths.count { state.widths.append(0) }
                    state.widths[column] = max(state.widths[column], text.count)
                }
            }
            return state.widths
        }
        Output.write(Output.table(rows, widths: widths).joined(separator: "\n") + "\n", to: .standardOutput)
    }
}
