import Foundation
import Synchronization
import SystemPackage

/// A few records that outlive the process that made them: each change is appended to a file as a line of its own, which
/// costs no more than a write, and the file is made anew when most of it is of the past.
///
/// A SIGKILL loses nothing of it. A machine that stops may: what of it is not on the disk by then. Where the file cannot be
/// written, the records live as long as the process.
package final class SurvivingRecords<Record: Codable & Sendable>: Sendable {
    private struct Line: Codable {
        /// Which record, as bytes: names are.
        var key: [UInt8]
        /// Nil is gone.
        var record: Record?
    }

    private struct State {
        var records: [[UInt8]: Record] = [:]
        var lines = 0
        var file: FileDescriptor?
    }

    private let path: FilePath?
    private let state: Mutex<State>
    private static var slack: Int { 200 }

    /// - Parameter path: nil for records that need not outlive anything.
    package init(path: FilePath?) {
        self.path = path
        var found = State()
        if let path, let data = try? Data(contentsOf: URL(fileURLWithPath: path.string)) {
            for text in data.split(separator: UInt8(ascii: "\n")) {
                found.lines += 1
                // A line that was cut off is of a change that nobody has built on.
                guard let line = try? JSONDecoder().decode(Line.self, from: Data(text)) else { continue }
                found.records[line.key] = line.record
            }
        }
        state = Mutex(found)
    }

    deinit {
        state.withLock { state in
            try? state.file?.close()
            state.file = nil
        }
    }

    /// What is known, in no order.
    package var all: [(key: [UInt8], record: Record)] { state.withLock { $0.records.map { ($0.key, $0.value) } } }

    package subscript(_ key: [UInt8]) -> Record? { state.withLock { $0.records[key] } }

    package func set(_ key: [UInt8], _ record: Record) {
        state.withLock { state in
            state.records[key] = record
            append(Line(key: key, record: record), &state)
        }
    }

    package func remove(_ key: [UInt8]) {
        state.withLock { state in
            guard state.records.removeValue(forKey: key) != nil else { return }
            append(Line(key: key, record: nil), &state)
        }
    }

    private func append(_ line: Line, _ state: inout State) {
        guard let path else { return }
        do {
            if state.lines > 4 * state.records.count + Self.slack { return try rewrite(path, &state) }
            let file: FileDescriptor
            if let open = state.file {
                file = open
            } else {
                file = try FileDescriptor.open(
                    path, .writeOnly, options: [.create, .append, .closeOnExec], permissions: .ownerReadWrite)
                state.file = file
                // Behind a line that was cut off.
                if state.lines > 0 { try file.writeAll([UInt8(ascii: "\n")]) }
            }
            try file.writeAll(try JSONEncoder().encode(line) + [UInt8(ascii: "\n")])
            state.lines += 1
        } catch {
            try? state.file?.close()
            state.file = nil
        }
    }

    private func rewrite(_ path: FilePath, _ state: inout State) throws {
        try? state.file?.close()
        state.file = nil
        var text = Data()
        for (key, record) in state.records {
            text += try JSONEncoder().encode(Line(key: key, record: record)) + [UInt8(ascii: "\n")]
        }
        try text.write(to: URL(fileURLWithPath: path.string), options: .atomic)
        state.lines = state.records.count
    }
}
