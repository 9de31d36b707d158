import FileProvider
import FileProviderTesting
import Foundation
import Logging
import Replica
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// A machine with a mount on which processes write, and a remote in memory: everything a test of writing needs.
///
/// Nothing moves by itself unless the machine was made so: operations are run one by one.
final class Machine: Sendable {
    let provider: InMemoryProvider
    let replica: Replica
    let engine: SyncEngine
    let open = OpenSet()
    let kernel = KernelRecorder()
    let request = FileProviderRequest(reason: .reading, processIdentifier: 1)
    private let folder: FilePath
    static let caller = LocalCaller(user: 0, group: 0)

    /// Opens what is in a folder, or makes it anew.
    init(
        in folder: FilePath, provider: InMemoryProvider, isReadOnly: Bool = false, isInteractive: Bool = true,
        cacheLimits: CacheLimits = CacheLimits(), uploadDelays: UploadDelays = UploadDelays()
    ) throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        self.folder = folder
        self.provider = provider
        replica = try Replica(at: folder, readers: 4, logger: logger)
        engine = SyncEngine(
            provider: provider, replica: replica, open: open, kernel: kernel, polling: .never,
            isReadOnly: isReadOnly, isInteractive: isInteractive, cacheLimits: cacheLimits, uploadDelays: uploadDelays,
            logger: logger)
    }

    /// Runs a test with a machine of its own that has listed all of the remote.
    static func run(
        options: InMemoryProvider.Options = .init(), isInteractive: Bool = true,
        cacheLimits: CacheLimits = CacheLimits(), uploadDelays: UploadDelays = UploadDelays(),
        fill: (inout RemoteTree) -> Void = { _ in },
        _ test: (Machine) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let provider = InMemoryProvider(options: options)
        provider.change(fill)
        let machine = try Machine(
            in: directory["replica"], provider: provider, isInteractive: isInteractive, cacheLimits: cacheLimits,
            uploadDelays: uploadDelays)
        try await withCleanUp({ await machine.stop() }) {
            try await machine.listAll()
            try await machine.engine.refresh()
            provider.log.clear()
            machine.engine.start()
            try await test(machine)
        }
    }

    func stop() async {
        provider.faults.clear()
        await engine.stop()
    }

    /// The power fails: another machine goes on with what is on the disk now. This one must not be asked any more.
    func crash() throws -> Machine {
        let copy = FilePath(folder.string + "-\(UUID().uuidString.prefix(8))")
        try DiskImage.copy(folder, to: copy)
        return try Machine(in: copy, provider: provider)
    }

    // MARK: - Operations

    /// What could be done, without looking for news.
    func operations() async throws -> [SyncOperation] {
        try await engine.possibleOperations().filter { $0 != .ingestion }
    }

    func ingest() async throws {
        try await engine.run(.ingestion)
    }

    /// Runs whatever is possible until nothing is left, and two looks for news have brought nothing.
    func drain(atMost limit: Int = 300) async throws {
        var quiet = 0
        var tried: Set<SyncOperation> = []
        for _ in 0..<limit {
            // What has just been tried in vain waits for news, as it would wait for its time.
            if let next = try await operations().first(where: { !tried.contains($0) }) {
                quiet = 0
                tried.insert(next)
                await engine.runAlone(next)
            } else {
                if !tried.isEmpty { quiet = 0 }
                tried = []
                try await ingest()
                quiet += 1
                if quiet > 2 { return }
            }
        }
        throw TestFailure("it does not come to rest: \(try await operations()), \(engine.warnings.texts.suffix(3))")
    }

    /// Sends what can be sent, without looking for news; what fails is tried again in the next pass.
    func send(passes: Int = 3) async throws {
        for _ in 0..<passes {
            var tried: Set<SyncOperation> = []
            while let next = try await operations().first(where: { !tried.contains($0) }) {
                tried.insert(next)
                await engine.runAlone(next)
            }
        }
    }

    /// Changes an item, each time until the remote has it, on a machine that is not interactive. All changes are planned each time, so
    /// that one that does not wait for a later time was begun as often.
    ///
    /// - Parameter times: an even number.
    func sendOthers(_ path: String, times: Int = 2) async throws {
        let number = try await number(path)
        for time in 0..<times {
            try await setPermissions(of: path, to: time.isMultiple(of: 2) ? 0o711 : 0o755)
            try await engine.send(number)
        }
    }
}

extension SyncEngine {
    /// As `run`, for what is no ingestion.
    func runAlone(_ operation: SyncOperation) async {
        await uploads.run(operation)
    }
}

// MARK: - What processes do

extension Machine {
    /// Makes a local change as the mount does it: what has to be here first is brought here.
    @discardableResult
    func change<Value>(_ body: (LocalChanges) throws -> Value) async throws -> Value {
        for _ in 0..<8 {
            do {
                let (value, effects) = try replica.change(open: open, body)
                engine.commits.publish(effects)
                engine.localChange()
                return value
            } catch let obstacle as LocalObstacle {
                switch obstacle {
                case .refused: throw obstacle
                case .listing(let number): try await engine.list(number, request: request)
                case .content(let number): try await engine.materialize(number, request: request)
                case .room: try await engine.makeRoom()
                }
            }
        }
        throw LocalObstacle.refused(.resourceTemporarilyUnavailable)
    }

    /// The inode at a path.
    func number(_ path: String) async throws -> InodeNumber {
        var number = InodeNumber.root
        for name in path.split(separator: "/") { number = try await child(String(name), of: number) }
        return number
    }

    func exists(_ path: String) async -> Bool { (try? await number(path)) != nil }

    func record(_ path: String) async throws -> InodeRecord {
        let number = try await number(path)
        return try #require(try replica.database.inode(number))
    }

    func item(_ path: String) async throws -> ItemRecord {
        let (parent, name) = try await place(path)
        return try #require(try replica.database.items(in: parent).first { $0.name == name })
    }

    /// The directory that holds a path, and its last name.
    func place(_ path: String) async throws -> (parent: InodeNumber, name: String) {
        let names = path.split(separator: "/").map(String.init)
        return (try await number(names.dropLast().joined(separator: "/")), names.last ?? "")
    }

    func write(_ text: String, to path: String) async throws {
        let number = try await open(path)
        try put(text, into: number)
        try await close(number)
    }

    /// Opens a file for writing, truncated, and makes it when it is not there.
    func open(_ path: String) async throws -> InodeNumber {
        let (parent, name) = try await place(path)
        let number: InodeNumber
        if let known = try? await child(name, of: parent) {
            number = known
        } else {
            let new = NewInode(kind: .file, permissions: 0o644)
            number = try await change {
                try $0.names.create(name, in: parent, new, caller: Self.caller, usualGroup: 0)
            }.number
        }
        try await change { try $0.contents.beginWriting(number, truncating: true, caller: Self.caller) }
        open.insert(number)
        return number
    }

    /// Opens a file for writing, with what is in it.
    func beginWriting(_ number: InodeNumber) async throws {
        try await change { try $0.contents.beginWriting(number, truncating: false, caller: Self.caller) }
    }

    /// Writes as the kernel does, past the daemon.
    func put(_ text: String, into number: InodeNumber) throws {
        let file = try replica.openContentForWriting(of: number)
        defer { try? file.close() }
        try file.writeAll(Array(text.utf8).span.bytes, at: 0)
    }

    /// Writes a text, and another over it while the provider holds the first, all of which it has read by then. All is sent then.
    func write(
        _ first: String, to path: String, thenWhileItIsSent second: String, by kind: ProviderCallKind
    ) async throws {
        let gate = Gate()
        provider.faults.add(.holdTransfer(after: Int64(first.utf8.count), gate), to: kind, times: 1)
        let number = try await open(path)
        try put(first, into: number)
        try engine.noteWrittenFiles()
        let sending = Task { try await send(passes: 1) }
        #expect(await eventually { gate.waiting == 1 })
        try put(second, into: number)
        gate.open()
        try await sending.value
        try await close(number)
        try await drain()
    }

    func close(_ number: InodeNumber) async throws {
        try await change { try $0.contents.endWriting(number) }
        open.remove(number)
        try await engine.commits.commit { try $0.versions.settle(number) }
    }

    func makeDirectory(_ path: String) async throws {
        let (parent, name) = try await place(path)
        let new = NewInode(kind: .directory, permissions: 0o755)
        try await change { try $0.names.create(name, in: parent, new, caller: Self.caller, usualGroup: 0) }
    }

    func rename(_ path: String, to newPath: String, _ rule: RenameRule = .replace) async throws {
        let (parent, name) = try await place(path)
        let (newParent, newName) = try await place(newPath)
        try await change { try $0.names.rename(name, in: parent, to: newName, in: newParent, rule) }
    }

    func link(_ path: String, as newPath: String) async throws {
        let number = try await number(path)
        let (parent, name) = try await place(newPath)
        try await change { try $0.names.link(number, as: name, in: parent) }
    }

    /// Removes a file, or a directory with all below it.
    func remove(_ path: String, _ willRemove: (InodeNumber) throws -> Void = { _ in }) async throws {
        let (parent, name) = try await place(path)
        let number = try await number(path)
        if try replica.database.inode(number)?.kind == .directory {
            for child in try await names(in: number) { try await remove("\(path)/\(child)", willRemove) }
            try await change { try $0.names.removeDirectory(name, in: parent) }
        } else {
            try willRemove(number)
            try await change { _ = try $0.names.unlink(name, in: parent) }
        }
    }

    func setTime(of path: String, to time: FileTimestamp) async throws {
        let number = try await number(path)
        let attributes = LocalAttributes(modifiedAt: .at(time))
        try await change { _ = try $0.attributes.setAttributes(of: number, to: attributes, caller: Self.caller) }
    }

    func setPermissions(of path: String, to permissions: UInt16) async throws {
        let number = try await number(path)
        let attributes = LocalAttributes(permissions: permissions)
        try await change { _ = try $0.attributes.setAttributes(of: number, to: attributes, caller: Self.caller) }
    }

    func names(in directory: InodeNumber) async throws -> [String] {
        try await engine.list(directory, request: request)
        return try replica.database.entries(of: directory, after: 0, limit: 100_000).map(\.name)
    }

    func read(_ path: String) async throws -> String {
        try await read(number(path))
    }

    func read(_ number: InodeNumber) async throws -> String {
        let inode = try #require(try replica.database.inode(number))
        if inode.content != .materialized {
            try await engine.provide(
                number, version: inode.contentVersion, range: 0..<inode.size, request: request)
            // A process is answered as bytes arrive. What comes next here counts on them.
            await engine.downloads.settle(number)
        }
        guard inode.size > 0 else { return "" }
        let file = try replica.openContent(of: number)
        defer { try? file.close() }
        return String(decoding: try file.readBytes(at: 0, count: Int(inode.size)), as: UTF8.self)
    }

    func listAll(_ directory: InodeNumber = .root) async throws {
        for name in try await names(in: directory) {
            guard let inode = try replica.database.lookup(name, in: directory).inode, inode.kind == .directory else {
                continue
            }
            try await listAll(inode.number)
        }
    }

    private func child(_ name: String, of directory: InodeNumber) async throws -> InodeNumber {
        guard try replica.database.inode(directory)?.kind == .directory else {
            throw LocalObstacle.refused(.notDirectory)
        }
        try await engine.list(directory, request: request)
        guard let inode = try replica.database.lookup(name, in: directory).inode else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        return inode.number
    }
}
