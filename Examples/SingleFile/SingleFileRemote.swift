import FileProvider
import FileProviderPaths
import Foundation

/// A remote in one file: a small example to start from. The file is JSON, and can be edited while it is mounted.
///
/// It uses only what the products `FileProvider` and `FileProviderPaths` offer to every package. What it leaves out has
/// default implementations. An actor makes its calls one after the other, so a condition and the change after it are one
/// step; only one program may change the file at a time.
public actor SingleFileRemote: PathRemote {
    private let url: URL

    /// The remote in a file.
    ///
    /// - Parameter file: is made when it is missing.
    /// - Throws: `serverUnreachable` when it cannot be made, `malformedResponse` when it is not a library.
    public init(file: String) throws {
        url = URL(fileURLWithPath: file)
        if !FileManager.default.fileExists(atPath: file) { try Library().save(to: url) }
        _ = try Library(at: url)
    }

    /// A provider of the file that a domain's source names.
    ///
    /// - Throws: as ``init(file:)``.
    public static func provider(for manager: any FileProviderManager) throws -> any FileProviderReplicatedExtension {
        PathAddressedProvider(remote: try SingleFileRemote(file: manager.domain.source), manager: manager)
    }

    public nonisolated var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.checksConditions = true
        traits.checksEmptiness = true
        traits.storesModificationDates = true
        return traits
    }

    // MARK: - Reading

    public func entry(at path: RemotePath) async throws -> RemoteEntry { try Library(at: url).entry(at: path) }

    public func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        let library = try Library(at: url)
        guard try library.entry(at: path).kind == .directory else { throw FileProviderError(.noSuchItem) }
        return RemoteListing(entries: try library.children(of: path).map(library.entry(at:)))
    }

    public func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        let library = try Library(at: url)
        let entry = try library.entry(at: path)
        guard let content = library[path]?.content else { throw FileProviderError(.noSuchItem) }
        guard tag == nil || tag == entry.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        let all = 0..<Int64(content.count)
        let wanted = range?.clamped(to: all) ?? all
        try sink.write([UInt8](content[Int(wanted.lowerBound)..<Int(wanted.upperBound)]), at: wanted.lowerBound)
        return entry
    }

    // MARK: - Changing

    public func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let bytes = try contents.read(at: 0, count: Int(contents.size))
        try contents.confirm()
        return try change { library in
            try library.check(condition, at: path)
            return try library.put(Data(bytes), at: path, attributes)
        }
    }

    public func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try change { library in
            try library.check(.absent, at: path)
            return try library.put(nil, at: path, attributes)
        }
    }

    public func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try change { library in
            try library.check(.absent, at: newPath)
            return try library.move(path, to: newPath)
        }
    }

    public func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        let entry = try change { library in
            if let date = attributes.contentModificationDate {
                library[path]?.modified = date.nanosecondsSince1970
            }
            return try library.entry(at: path)
        }
        return (entry, attributes.fields.subtracting(.contentModificationDate))
    }

    public func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try change { library in
            guard library[path] != nil else { return }
            try library.check(condition, at: path)
            library.delete(path)
        }
    }

    /// Makes a change, and saves it unless it throws.
    private func change<Value>(_ body: (inout Library) throws -> Value) throws -> Value {
        var library = try Library(at: url)
        let value = try body(&library)
        try library.save(to: url)
        return value
    }
}
