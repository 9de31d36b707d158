import Foundation
import Synchronization

/// Prints a list that arrives in parts: as a table whose columns may grow, or as one JSON array.
final class ListOutput<Element: Encodable & Sendable>: Sendable {
    private struct State {
        var isEmpty = true
        var widths: [Int] = []
        var lastNote: String?
    }

    private let output: Output
    private let row: @Sendable (Element) -> [String]
    private let note: @Sendable (Element) -> String?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - row: the columns of an element.
    ///   - note: an indented line below them; `as above` where the element before has the same.
    init(
        _ output: Output, row: @escaping @Sendable (Element) -> [String],
        note: @escaping @Sendable (Element) -> String? = { _ in nil }
    ) {
        self.output = output
        self.row = row
        self.note = note
    }

    func add(_ elements: [Element]) throws {
        guard !elements.isEmpty else { return }
        let isFirst = state.withLock { exchange(&$0.isEmpty, with: false) }
        if output.isJSON {
            let text = try elements.map { try Output.json($0) }
            Output.writeJSON((isFirst ? "[\n" : ",\n") + text.joined(separator: ",\n"))
        } else {
            addTable(elements)
        }
    }

    func finish() throws {
        guard output.isJSON else { return }
        Output.write(isEmpty ? "[]\n" : "\n]\n", to: .standardOutput)
    }

    var isEmpty: Bool { state.withLock { $0.isEmpty } }

    private func addTable(_ elements: [Element]) {
        let rows = elements.map { row($0).map(Output.shown) }
        let widths = state.withLock { state in
            for row in rows {
                for (column, text) in row.enumerated() {
                    if column == state.widths.count { state.widths.append(0) }
                    state.widths[column] = max(state.widths[column], text.count)
                }
            }
            return state.widths
        }
        let lines = zip(elements, Output.table(rows, widths: widths)).flatMap { element, line in
            [line] + (shownNote(of: element).map { ["  " + Output.shown($0)] } ?? [])
        }
        Output.write(lines.joined(separator: "\n") + "\n", to: .standardOutput)
    }

    private func shownNote(of element: Element) -> String? {
        guard let text = note(element) else {
            state.withLock { $0.lastNote = nil }
            return nil
        }
        let last = state.withLock { exchange(&$0.lastNote, with: text) }
        return last == text ? "as above" : text
    }
}
