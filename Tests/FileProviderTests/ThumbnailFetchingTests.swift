import FileProvider
import FileProviderTesting
import Synchronization
import Testing

/// Thumbnails of a provider that fetches each by itself.
@Suite struct ThumbnailFetchingTests {
    private static let identifiers = (0..<20).map { ItemIdentifier("\($0)") }

    @Test(
        "thumbnails are fetched a few at the same time, and no more than the provider prefers",
        arguments: [(2, 2), (16, 6)])
    func atOnce(preferred: Int, most: Int) async throws {
        let provider = InMemoryProvider(options: .with(\.concurrentCalls, preferred))
        let gate = Gate()
        let running = Mutex((now: 0, most: 0))
        let found = Mutex<[[UInt8]]>([])
        try await provider.fetchEachThumbnail(
            of: Self.identifiers,
            perThumbnailCompletionHandler: { _, result in
                guard case .success(let image?) = result else { return }
                found.withLock { $0.append(image) }
            },
            fetch: { identifier in
                let now = running.withLock { state in
                    state.now += 1
                    state.most = max(state.most, state.now)
                    return state.now
                }
                if now == most { gate.open() }
                try await gate.pass()
                running.withLock { $0.now -= 1 }
                return Array(identifier.rawValue.utf8)
            })
        #expect(running.withLock { $0.most } == most)
        #expect(Set(found.withLock { $0 }) == Set(Self.identifiers.map { Array($0.rawValue.utf8) }))
    }

    @Test("an error that concerns the whole domain ends the fetching of thumbnails, another one is of its file alone")
    func errors() async throws {
        let gate = Gate()
        let asked = Mutex<[ItemIdentifier]>([])
        let failures = Mutex<[ItemIdentifier: FileProviderError.Code]>([:])
        do {
            try await InMemoryProvider().fetchEachThumbnail(
                of: Self.identifiers,
                perThumbnailCompletionHandler: { identifier, result in
                    guard case .failure(let error as FileProviderError) = result else { return }
                    failures.withLock { $0[identifier] = error.code }
                },
                fetch: { identifier in
                    asked.withLock { $0.append(identifier) }
                    if identifier == "0" { throw FileProviderError(.noSuchItem) }
                    if identifier == "1" {
                        // After the other failure has been told.
                        while failures.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(1)) }
                        throw FileProviderError(.serverUnreachable)
                    }
                    try await gate.pass()
                    return nil
                })
            Issue.record("it succeeded")
        } catch let error as FileProviderError {
            #expect(error.code == .serverUnreachable)
        }
        #expect(failures.withLock { $0 } == ["0": .noSuchItem])
        // Six at the same time, and one in the place of the first.
        #expect(asked.withLock { $0.count } <= 7)
    }
}
