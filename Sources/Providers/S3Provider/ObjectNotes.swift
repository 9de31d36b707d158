import Foundation
import HTTPTransport
import Synchronization
import SystemPackage

/// Something small to be remembered of single objects: a file for each directory, in the provider's folder. What is lost can
/// be done without.
///
/// A change is appended as a line of its own, so that noting one object of a large directory costs no more than one of a
/// small directory; a file is made anew when most of it is of the past.
final class ObjectNotes<Note: Codable & Sendable>: Sendable {
    private struct Line: Codable {
        /// In the form of ``split(_:)``.
        var name: String
        /// Nil is gone.
        var note: Note?
    }

    private struct Page {
        /// By what follows the last slash, in the form of ``split(_:)``.
        var notes: [String: Note] = [:]
        /// How many lines the file has; nil for one that nothing can be appended to.
        var lines: Int? = 0
    }

    private struct State {
        var pages: [KeyBytes: Page] = [:]
        /// Whether anything was ever noted.
        var isUsed: Bool
    }

    private let directory: FilePath
    private let state: Mutex<State>
    private static var mostPages: Int { 100 }
    private static var slack: Int { 200 }

    init(directory: FilePath) {
        self.directory = directory
        state = Mutex(State(isUsed: FileManager.default.fileExists(atPath: directory.string)))
    }

    subscript(_ key: String) -> Note? {
        state.withLock { state in
            guard state.isUsed else { return nil }
            let (prefix, name) = Self.split(key)
            load(prefix, &state)
            return state.pages[prefix]?.notes[name]
        }
    }

    /// - Parameter changes: nil forgets what was noted.
    func note(_ changes: [(key: String, note: Note?)]) {
        state.withLock { state in
            guard state.isUsed || changes.contains(where: { $0.note != nil }) else { return }
            for (prefix, some) in Dictionary(grouping: changes, by: { Self.split($0.key).prefix }) {
                load(prefix, &state)
                var lines: [Line] = []
                for (key, note) in some {
                    let name = Self.split(key).name
                    guard note != nil || state.pages[prefix]?.notes[name] != nil else { continue }
                    // In place: a copy of the page would cost as much as the directory is large.
                    state.pages[prefix]?.notes[name] = note
                    lines.append(Line(name: name, note: note))
                }
                guard !lines.isEmpty else { continue }
                save(lines, of: prefix, &state)
                state.isUsed = true
            }
        }
    }

    private func save(_ lines: [Line], of prefix: KeyBytes, _ state: inout State) {
        let path = path(of: prefix)
        let count = state.pages[prefix]?.notes.count ?? 0
        guard count > 0 else {
            try? FileManager.default.removeItem(atPath: path)
            state.pages[prefix]?.lines = 0
            return
        }
        try? FileManager.default.createDirectory(atPath: directory.string, withIntermediateDirectories: true)
        if let known = state.pages[prefix]?.lines, known + lines.count <= 4 * count + Self.slack,
            (try? append(lines, to: path)) != nil
        {
            state.pages[prefix]?.lines = known + lines.count
            return
        }
        let all = (state.pages[prefix]?.notes ?? [:]).map { Line(name: $0.key, note: $0.value) }
        let isWritten = (try? Self.text(all).write(to: URL(fileURLWithPath: path), options: .atomic)) != nil
        state.pages[prefix]?.lines = isWritten ? count : nil
    }

    private func append(_ lines: [Line], to path: String) throws {
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .append, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(Self.text(lines)) }
    }

    private static func text(_ lines: [Line]) throws -> Data {
        let encoder = JSONEncoder()
        return try lines.reduce(into: Data()) { text, line in
            text += try encoder.encode(line)
            text.append(UInt8(ascii: "\n"))
        }
    }

    /// Brings what was noted of a directory into memory.
    private func load(_ prefix: KeyBytes, _ state: inout State) {
        if state.pages[prefix] != nil { return }
        if state.pages.count >= Self.mostPages { state.pages.removeAll() }
        var page = Page()
        if let data = try? Data(contentsOf: URL(fileURLWithPath: path(of: prefix))) {
            let decoder = JSONDecoder()
            // Earlier versions wrote one object with all names. Behind a line that was cut off nothing is appended.
            if let notes = try? decoder.decode([String: Note].self, from: data) {
                (page.notes, page.lines) = (notes, nil)
            } else {
                let lines = data.split(separator: UInt8(ascii: "\n"))
                for text in lines {
                    guard let line = try? decoder.decode(Line.self, from: Data(text)) else { continue }
                    page.notes[line.name] = line.note
                }
                page.lines = data.last == UInt8(ascii: "\n") ? lines.count : nil
            }
        }
        state.pages[prefix] = page
    }

    private func path(of prefix: KeyBytes) -> String {
        directory.appending(String(Signature.hash(prefix.bytes).prefix(32)) + ".json").string
    }

    /// A directory, and a name in ASCII alone, which no two have: JSON's names are text, and not bytes.
    private static func split(_ key: String) -> (prefix: KeyBytes, name: String) {
        let name =
            key.utf8.lastIndex(of: UInt8(ascii: "/")).map { key.utf8[key.utf8.index(after: $0)...] } ?? key.utf8[...]
        let prefix = KeyBytes(String(decoding: key.utf8[..<name.startIndex], as: UTF8.self))
        if name.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") }) {
            return (prefix, String(decoding: name, as: UTF8.self))
        }
        return (prefix, PercentEncoding.encode(String(decoding: name, as: UTF8.self)))
    }
}
