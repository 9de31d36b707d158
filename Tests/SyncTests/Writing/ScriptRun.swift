import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Synchronization
import Syscalls
import SystemPackage
import TestSupport

@testable import Sync

/// One script, carried out on a machine and a remote of its own, and what was wrong at the end.
struct ScriptRun {
    private var machine: Machine
    private var versions: [[UInt8]: String] = [:]
    /// Texts that were written, and neither removed nor overwritten by a client that had read them.
    private var kept: Set<String> = []
    private var written = 0

    /// The remote that every script begins with: `a`, `b`, `d` with `x` and `y`, `e` with `f`.
    static func fill(_ tree: inout RemoteTree) {
        tree.addFile("a", content: RemoteContent("first a"), identifier: "a")
        tree.addFile("b", content: RemoteContent("first b"), identifier: "b")
        tree.addDirectory("d", identifier: "d")
        tree.addFile("x", in: "d", content: RemoteContent("first x"), identifier: "x")
        tree.addFile("y", in: "d", content: RemoteContent("first y"), identifier: "y")
        tree.addDirectory("e", identifier: "e")
        tree.addDirectory("f", in: "e", identifier: "f")
    }

    /// - Returns: what was wrong, in words; nothing when all was well.
    static func complaints(of script: Script, in starting: StartingPoint) async throws -> [String] {
        let folder = try starting.copy()
        defer { starting.remove(folder) }
        let provider = InMemoryProvider(tree: starting.tree)
        let machine = try Machine(in: folder, provider: provider)
        var run = ScriptRun(machine: machine)
        let complaints: [String]
        do {
            complaints = try await run.run(script)
        } catch {
            complaints = ["\(error)"]
        }
        await run.machine.stop()
        return complaints
    }

    private init(machine: Machine) {
        self.machine = machine
        noteVersions()
        kept = Set(versions.values)
    }

    private mutating func run(_ script: Script) async throws -> [String] {
        for step in script.steps {
            switch step {
            case .ingest: try await machine.ingest()
            case .operation(let number):
                if let operation = try await operation(number) { await machine.engine.runAlone(operation) }
            case .lostOperation(let number):
                guard let operation = try await operation(number) else { continue }
                for kind in [ProviderCallKind.create, .modify, .delete] {
                    machine.provider.faults.add(.applyThenFail(FileProviderError(.timedOut)), to: kind, times: 1)
                }
                await machine.engine.runAlone(operation)
                machine.provider.faults.clear()
            case .fatalOperation(let number, let isApplied):
                if let operation = try await operation(number) { try await die(in: operation, isApplied: isApplied) }
            case .change(.local, let change):
                do {
                    try await local(change)
                } catch is LocalObstacle {
                    // It is not possible as things stand.
                } catch is FileProviderError {
                    // The remote has moved on from what is shown.
                }
            case .change(.remote, let change): remote(change)
            }
            noteVersions()
        }
        try await machine.drain()
        var complaints = try await machine.complaints()
        let present = Set(machine.provider.tree.entries().values.compactMap(\.content))
        for lost in kept.subtracting(present).sorted() { complaints.append("'\(lost)' is lost") }
        return complaints
    }

    private func operation(_ number: Int) async throws -> SyncOperation? {
        let possible = try await machine.operations()
        return possible.isEmpty ? nil : possible[number % possible.count]
    }

    /// The next machine goes on with what this one had recorded when its call was on the way.
    private mutating func die(in operation: SyncOperation, isApplied: Bool) async throws {
        let faults = machine.provider.faults
        let gates = [ProviderCallKind.create, .modify, .delete].map { faults.hold($0, times: 1) }
        let (dying, end) = (machine, Flag())
        let dyingTask = Task {
            await dying.engine.runAlone(operation)
            end.isSet = true
        }
        _ = await eventually { end.isSet || gates.contains { $0.waiting > 0 } }
        machine = try dying.crash()
        if isApplied {
            for gate in gates { gate.open() }
        } else {
            await dying.engine.stop()
        }
        await dyingTask.value
        faults.clear()
        await dying.engine.stop()
    }

    // MARK: - Here

    private mutating func local(_ change: Script.Change) async throws {
        switch change {
        case .create(let path):
            guard await !machine.exists(path) else { return }
            try await writeHere(path)
        case .makeDirectory(let path): try await machine.makeDirectory(path)
        case .edit(let path):
            let number = try await machine.number(path)
            guard try machine.replica.database.inode(number)?.kind == .file else { return }
            try await writeHere(path)
        case .move(let path, let new):
            let replaced = try? await machine.number(new)
            let moved = try await machine.number(path)
            guard replaced != moved else { return }
            var text: String?
            if let replaced { text = try seen(replaced) }
            try await machine.rename(path, to: new)
            if let text { kept.remove(text) }
        case .delete(let path): try await removeHere(path)
        case .changeType(let path):
            let isDirectory = try await machine.record(path).kind == .directory
            try await removeHere(path)
            if isDirectory {
                try await writeHere(path)
            } else {
                try await machine.makeDirectory(path)
                try await writeHere(path + "/in")
            }
        }
    }

    private mutating func writeHere(_ path: String) async throws {
        var old: String?
        if let number = try? await machine.number(path) { old = try seen(number) }
        written += 1
        let text = "local \(written)"
        try await machine.write(text, to: path)
        if let old { kept.remove(old) }
        kept.insert(text)
    }

    private mutating func removeHere(_ path: String) async throws {
        var gone: [String] = []
        defer { kept.subtract(gone) }
        try await machine.remove(path) { number in
            if let text = try seen(number) { gone.append(text) }
        }
    }

    /// What a process here finds in a file.
    private func seen(_ number: InodeNumber) throws -> String? {
        guard let item = try machine.replica.database.item(ofInode: number), item.inode.kind == .file else {
            return nil
        }
        guard item.identifier != nil, !item.changedFields.contains(.contents) else {
            let file = try machine.replica.openContent(of: number)
            defer { try? file.close() }
            return String(decoding: try file.readBytes(at: 0, count: Int(item.inode.size)), as: UTF8.self)
        }
        return versions[item.inode.contentVersion]
    }

    // MARK: - There

    private mutating func remote(_ change: Script.Change) {
        let tree = machine.provider.tree
        let (parentPath, name) = Self.split(change.path)
        let known = tree.identifier(at: change.path)
        let item = known.flatMap { tree[$0] }
        guard let parent = tree.identifier(at: parentPath), tree[parent]?.kind == .directory else { return }
        switch change {
        case .create:
            guard known == nil else { return }
            writeThere { $0.addFile(name, in: parent, content: $1) }
        case .makeDirectory:
            guard known == nil else { return }
            machine.provider.change { _ = $0.addDirectory(name, in: parent) }
        case .edit:
            guard let known, item?.kind == .file else { return }
            forget(known)
            writeThere { $0.write($1, to: known) }
        case .move(_, let new):
            let (newParentPath, newName) = Self.split(new)
            guard let known, let item, let newParent = tree.identifier(at: newParentPath),
                tree[newParent]?.kind == .directory, !Self.isBelow(newParent, known, tree)
            else { return }
            if let replaced = tree.identifier(at: new) {
                guard replaced != known, item.kind == .file, tree[replaced]?.kind == .file else { return }
                forget(replaced)
                machine.provider.change { $0.delete(replaced) }
            }
            machine.provider.change { $0.move(known, to: newParent, as: newName) }
        case .delete:
            guard let known else { return }
            forget(known)
            machine.provider.change { $0.delete(known) }
        case .changeType:
            guard let known, let item else { return }
            forget(known)
            machine.provider.change { $0.delete(known) }
            if item.kind == .directory {
                writeThere { $0.addFile(name, in: parent, content: $1) }
            } else {
                let directory = machine.provider.change { $0.addDirectory(name, in: parent) }
                writeThere { $0.addFile("in", in: directory, content: $1) }
            }
        }
    }

    private mutating func writeThere(_ body: @Sendable (inout RemoteTree, RemoteContent) -> Void) {
        written += 1
        let text = "remote \(written)"
        kept.insert(text)
        machine.provider.change { body(&$0, RemoteContent(text)) }
    }

    /// Another client removes an item with all that it contains, after having read it.
    private mutating func forget(_ identifier: ItemIdentifier) {
        let tree = machine.provider.tree
        var doomed = [identifier]
        while let next = doomed.popLast() {
            doomed += tree.items(in: next).map(\.itemIdentifier)
            if tree[next]?.kind == .file, let text = Self.text(of: next, in: tree) { kept.remove(text) }
        }
    }

    private mutating func noteVersions() {
        let tree = machine.provider.tree
        var directories = [ItemIdentifier.rootContainer]
        while let next = directories.popLast() {
            for item in tree.items(in: next) {
                if item.kind == .directory { directories.append(item.itemIdentifier) }
                if item.kind == .file, let text = Self.text(of: item.itemIdentifier, in: tree) {
                    versions[item.itemVersion.contentVersion] = text
                }
            }
        }
    }

    private static func text(of identifier: ItemIdentifier, in tree: RemoteTree) -> String? {
        tree.content(of: identifier).map { String(decoding: $0[0..<$0.size], as: UTF8.self) }
    }

    private static func split(_ path: String) -> (parent: String, name: String) {
        let names = path.split(separator: "/").map(String.init)
        return (names.dropLast().joined(separator: "/"), names.last ?? "")
    }

    private static func isBelow(_ directory: ItemIdentifier, _ ancestor: ItemIdentifier, _ tree: RemoteTree) -> Bool {
        var current = directory
        while current != .rootContainer {
            if current == ancestor { return true }
            current = tree[current]?.parentItemIdentifier ?? .rootContainer
        }
        return false
    }
}

extension Script.Change {
    var path: String {
        switch self {
        case .create(let path), .makeDirectory(let path), .edit(let path), .move(let path, _), .delete(let path),
            .changeType(let path):
            path
        }
    }
}

/// A replica that has listed all of the remote and holds some of its files: made once, and copied for each script.
final class StartingPoint: Sendable {
    let tree: RemoteTree
    private let directory: TemporaryDirectory

    init() async throws {
        directory = try TemporaryDirectory()
        let provider = InMemoryProvider()
        provider.change(ScriptRun.fill)
        let machine = try Machine(in: directory["first"], provider: provider)
        try await machine.listAll()
        for path in ["a", "d/x"] {
            try await machine.engine.materialize(machine.number(path), request: machine.request)
        }
        try await machine.ingest()
        await machine.engine.stop()
        try machine.replica.close()
        tree = provider.tree
    }

    deinit {
        directory.remove()
    }

    func copy() throws -> FilePath {
        let folder = directory[UUID().uuidString]
        try FileManager.default.copyItem(atPath: directory["first"].string, toPath: folder.string)
        return folder
    }

    func remove(_ folder: FilePath) {
        try? FileManager.default.removeItem(atPath: folder.string)
    }
}

private final class Flag: Sendable {
    private let state = Mutex(false)

    var isSet: Bool {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
