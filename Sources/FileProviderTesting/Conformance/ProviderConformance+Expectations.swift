import FileProvider

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
