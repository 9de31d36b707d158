/// What happens, one after the other, on both sides and between them. Its text can be read back, so that a case that
/// fails becomes a test.
struct Script: Hashable, Sendable, CustomStringConvertible {
    enum Side: String, Hashable, Sendable {
        case local = "L"
        case remote = "R"
    }

    enum Change: Hashable, Sendable {
        case create(String)
        case makeDirectory(String)
        case edit(String)
        /// A rename, a move or both; a file that is there is replaced.
        case move(String, to: String)
        case delete(String)
        /// A file becomes a directory of the same name with a file in it, a directory becomes a file.
        case changeType(String)
    }

    enum Step: Hashable, Sendable {
        case change(Side, Change)
        /// One of the operations that are possible, counted round.
        case operation(Int)
        /// The same, and its answer is lost.
        case lostOperation(Int)
        /// The same, and this machine dies in the middle of it, before the remote has heard of it or after.
        case fatalOperation(Int, isApplied: Bool)
        case ingest
    }

    var steps: [Step]

    init(_ steps: [Step]) {
        self.steps = steps
    }

    init(_ text: String) {
        steps = text.split(separator: ";").compactMap { part in
            let words = part.split(separator: " ").map(String.init)
            switch words.first {
            case "ingest": return .ingest
            case "op": return .operation(Int(words[1]) ?? 0)
            case "lost": return .lostOperation(Int(words[1]) ?? 0)
            case "fatal": return .fatalOperation(Int(words[1]) ?? 0, isApplied: words.last == "applied")
            default: break
            }
            guard words.count > 2, let side = Side(rawValue: words[0]) else { return nil }
            switch words[1] {
            case "create": return .change(side, .create(words[2]))
            case "mkdir": return .change(side, .makeDirectory(words[2]))
            case "edit": return .change(side, .edit(words[2]))
            case "move": return .change(side, .move(words[2], to: words[3]))
            case "delete": return .change(side, .delete(words[2]))
            case "type": return .change(side, .changeType(words[2]))
            default: return nil
            }
        }
    }

    var description: String {
        steps.map { step in
            switch step {
            case .ingest: "ingest"
            case .operation(let number): "op \(number)"
            case .lostOperation(let number): "lost \(number)"
            case .fatalOperation(let number, let isApplied): "fatal \(number) \(isApplied ? "applied" : "unheard")"
            case .change(let side, .create(let path)): "\(side.rawValue) create \(path)"
            case .change(let side, .makeDirectory(let path)): "\(side.rawValue) mkdir \(path)"
            case .change(let side, .edit(let path)): "\(side.rawValue) edit \(path)"
            case .change(let side, .move(let path, let new)): "\(side.rawValue) move \(path) \(new)"
            case .change(let side, .delete(let path)): "\(side.rawValue) delete \(path)"
            case .change(let side, .changeType(let path)): "\(side.rawValue) type \(path)"
            }
        }.joined(separator: "; ")
    }
}
