import FileProvider
import FileProviderPaths
import FileProviderTesting
import Testing

/// Comparisons of a download with local content.
@Suite struct ComparingSinkTests {
    private let bytes = Array("0123456789".utf8)

    @Test("CONFLICT-3: content is the same if a part of its download comes twice")
    func repeated() async throws {
        let isEqual = try await withContent(bytes) { source in
            try await source.equals { sink in
                try sink.write(Array(bytes[..<5]), at: 0)
                try sink.write(bytes, at: 0)
            }
        }
        #expect(isEqual)
    }

    @Test("CONFLICT-3: content is not the same if one half of its download comes twice, and the other never")
    func incomplete() async throws {
        let isEqual = try await withContent(bytes) { source in
            try await source.equals { sink in
                try sink.write(Array(bytes[..<5]), at: 0)
                try sink.write(Array(bytes[..<5]), at: 0)
            }
        }
        #expect(!isEqual)
    }
}
