import FileProvider

/// A violation of the provider contract.
public struct ConformanceFailure: Error, CustomStringConvertible {
    /// The violation in words.
    public var description: String

    /// A violation in words.
    public init(_ description: String) {
        self.description = description
    }
}

/// Throws if a condition is false.
func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    if !condition { throw ConformanceFailure(otherwise()) }
}

/// Throws unless `body` fails with this code.
func expect(
    _ code: FileProviderError.Code, from what: String, _ body: () async throws -> Void
) async throws {
    do {
        try await body()
    } catch let error as FileProviderError {
        return try expect(error.code == code, "\(what): \(error) instead of \(code)")
    } catch {
        throw ConformanceFailure("\(what): \(error) instead of \(code)")
    }
    throw ConformanceFailure("\(what): succeeds instead of \(code)")
}

extension ProviderConformance.Subject {
    /// Throws unless a fetch of a file or a range of it gives these bytes.
    func expectContent(
        _ content: [UInt8], of identifier: ItemIdentifier, version: [UInt8]? = nil, range: Range<Int64>? = nil,
        _ occasion: String
    ) async throws {
        let fetched = try await session.fetch(identifier, version: version, range: range).bytes
        try expect(
            fetched == content,
            "other content \(occasion): \(fetched.count) bytes, of which \(zip(fetched, content).count { $0 != $1 }) of "
                + "\(content.count) differ")
    }

    /// Throws unless a directory lists exactly these names.
    func expectNames(
        _ names: [String], in directory: ItemIdentifier = .rootContainer, _ occasion: String
    ) async throws {
        let listed = try await session.list(directory).map(\.filename).sorted()
        try expect(listed == names.sorted(), "the listing \(occasion) has \(listed) instead of \(names)")
    }
}
