import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import ProgramProvider
import SystemPackage

/// A second process of a program, which changes its remote as another client would.
protocol OtherClient: Sendable {
    var program: (any ProgramReading)? { get }
    /// The item at a path as the program is asked for it.
    func reference(to path: String) async throws -> String
    /// For files with contents.
    var directory: FilePath { get }
    func names() async throws -> [String]
    func makeDirectory(_ path: String) async throws
    func write(_ bytes: [UInt8], to path: String) async throws
    func rename(_ path: String, to newPath: String) async throws
    func delete(_ path: String) async throws
    func deleteAll() async
    func close() async
}

extension OtherClient {
    /// Throws unless the program itself refuses to read content that was replaced.
    func expectRefusal(toRead item: String, version: [UInt8], _ call: String) async throws {
        let place = directory.appending("read-\(UUID().uuidString)").string
        try Data().write(to: URL(fileURLWithPath: place))
        defer { try? FileManager.default.removeItem(atPath: place) }
        do {
            try await program?.read(item, exactly: version, into: place)
        } catch let error as FileProviderError where error.code == .versionNoLongerAvailable {
            return
        }
        throw ConformanceFailure("\(call) of replaced content succeeds, and must be versionNoLongerAvailable")
    }
}

struct PathClient: OtherClient {
    let remote: any PathRemote
    let directory: FilePath

    var program: (any ProgramReading)? { remote as? any ProgramReading }

    func reference(to path: String) -> String { path }

    func names() async throws -> [String] {
        var names: [String] = []
        try await remote.visitListing(of: .root) { part in
            names += part.entries.map(\.name)
            return true
        }
        return names
    }

    func makeDirectory(_ path: String) async throws {
        _ = try await remote.makeDirectory(at: RemotePath(path), attributes: RemoteAttributes())
    }

    func write(_ bytes: [UInt8], to path: String) async throws { try await write(bytes, to: path, if: .always) }

    func write(_ bytes: [UInt8], to path: String, if condition: RemoteCondition) async throws {
        try await withSource(bytes) { contents in
            _ = try await remote.write(contents, to: RemotePath(path), attributes: RemoteAttributes(), if: condition)
        }
    }

    func rename(_ path: String, to newPath: String) async throws {
        let kind = try await remote.entry(at: RemotePath(path)).kind
        _ = try await remote.move(RemotePath(path), to: RemotePath(newPath), kind: kind)
    }

    func delete(_ path: String) async throws {
        let kind = try await remote.entry(at: RemotePath(path)).kind
        try await remote.delete(RemotePath(path), kind: kind, if: .always)
    }

    func deleteAll() async {
        // A name that is no component of a path would be that of another item, an empty one that of the root.
        for name in (try? await names()) ?? [] where RemotePath.isName(name) { try? await delete(name) }
    }

    func close() async { await remote.close() }

    private func withSource(_ bytes: [UInt8], _ body: (ContentSource) async throws -> Void) async throws {
        let place = directory.appending("written-\(UUID().uuidString)")
        try Data(bytes).write(to: URL(fileURLWithPath: place.string))
        defer { try? FileManager.default.removeItem(atPath: place.string) }
        let file = try FileDescriptor.open(place, .readOnly, options: .closeOnExec)
        try await body(ContentSource(descriptor: file, size: Int64(bytes.count)))
    }
}

struct ItemClient: OtherClient {
    let session: ProviderSession

    var program: (any ProgramReading)? { session.provider as? any ProgramReading }

    var directory: FilePath { session.manager.stateDirectory }

    func reference(to path: String) async throws -> String { try await session.find(path).itemIdentifier.rawValue }

    func names() async throws -> [String] { try await all().map(\.filename) }

    /// The items in the root and in the trash, with those that cannot be shown, which a listing of the session refuses.
    private func all() async throws -> [FileProviderItem] {
        var items: [FileProviderItem] = []
        for container in [.rootContainer] + (session.provider.features.trash ? [ItemIdentifier.trashContainer] : []) {
            let enumerator = try session.provider.enumerator(for: container, request: session.request)
            defer { enumerator.invalidate() }
            var visited: Set<FileProviderPage> = []
            var next: FileProviderPage? = .initial
            while let page = next, visited.insert(page).inserted {
                let answer = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: 1000)
                items += answer.items
                next = answer.nextPage
            }
        }
        return items
    }

    func makeDirectory(_ path: String) async throws {
        try await session.create(template(path, kind: .directory))
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let (parent, name) = try await place(path)
        if let item = try await session.list(parent).first(where: { $0.filename.utf8.elementsEqual(name.utf8) }) {
            try await session.modify(item, .contents, content: bytes)
        } else {
            try await session.create(ProviderSession.template(name, in: parent), content: bytes)
        }
    }

    func rename(_ path: String, to newPath: String) async throws {
        var item = try await session.find(path)
        (item.parentItemIdentifier, item.filename) = try await place(newPath)
        try await session.modify(item, [.parentItemIdentifier, .filename])
    }

    func delete(_ path: String) async throws {
        try await session.delete(session.find(path), recursively: true)
    }

    func deleteAll() async {
        // A broken program may list a container as an item.
        let containers: [ItemIdentifier] = [.rootContainer, .trashContainer, .workingSet]
        for item in (try? await all()) ?? [] where !containers.contains(item.itemIdentifier) {
            try? await session.delete(item, recursively: true)
        }
    }

    func close() async { await session.provider.invalidate() }

    private func template(_ path: String, kind: ItemKind) async throws -> FileProviderItem {
        let (parent, name) = try await place(path)
        return ProviderSession.template(name, in: parent, kind: kind)
    }

    private func place(_ path: String) async throws -> (parent: ItemIdentifier, name: String) {
        var names = path.split(separator: "/").map(String.init)
        let name = names.popLast() ?? ""
        return (try await session.find(names.joined(separator: "/")).itemIdentifier, name)
    }
}

extension RemotePath {
    fileprivate init(_ path: String) { self.init(path.split(separator: "/").map(String.init)) }
}
