import Foundation
import HTTPTransport
import Synchronization
import SystemPackage

/// Something small to be remembered of single objects: a file for each directory, in the provider's folder. What is lost can
/// be done without.
final class ObjectNotes<Note: Codable & Sendable>: Sendable {
    /// By what follows the last slash, in the form of ``split(_:)``.
    private typealias Page = [String: Note]

    private struct State {
        var pages: [KeyBytes: Page] = [:]
        /// Whether anything was ever noted.
        var isUsed: Bool
    }

    private let directory: FilePath
    private let state: Mutex<State>
    private static var mostPages: Int { 100 }

    init(directory: FilePath) {
        self.directory = directory
        state = Mutex(State(isUsed: FileManager.default.fileExists(atPath: directory.string)))
    }

    subscript(_ key: String) -> Note? {
        state.withLock { state in
            guard state.isUsed else { return nil }
            let (prefix, name) = Self.split(key)
            return page(prefix, &state)[name]
        }
    }

    /// - Parameter changes: nil forgets what was noted.
    func note(_ changes: [(key: String, note: Note?)]) {
        state.withLock { state in
            guard state.isUsed || changes.contains(where: { $0.note != nil }) else { return }
            for (prefix, some) in Dictionary(grouping: changes, by: { Self.split($0.key).prefix }) {
                var page = page(prefix, &state)
                let before = page.count
                var isChanged = false
                for (key, note) in some {
                    let name = Self.split(key).name
                    isChanged = isChanged || note != nil || page[name] != nil
                    page[name] = note
                }
                guard isChanged else { continue }
                state.pages[prefix] = page
                if page.isEmpty, before > 0 {
                    try? FileManager.default.removeItem(atPath: path(of: prefix))
                } else if !page.isEmpty {
                    try? FileManager.default.createDirectory(
                        atPath: directory.string, withIntermediateDirectories: true)
                    try? JSONEncoder().encode(page).write(to: URL(fileURLWithPath: path(of: prefix)), options: .atomic)
                    state.isUsed = true
                }
            }
        }
    }

    private func page(_ prefix: KeyBytes, _ state: inout State) -> Page {
        if let page = state.pages[prefix] { return page }
        let data = try? Data(contentsOf: URL(fileURLWithPath: path(of: prefix)))
        let page = data.flatMap { try? JSONDecoder().decode(Page.self, from: $0) } ?? [:]
        if state.pages.count >= Self.mostPages { state.pages.removeAll() }
        state.pages[prefix] = page
        return page
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
