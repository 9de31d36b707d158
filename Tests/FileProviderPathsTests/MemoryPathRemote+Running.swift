import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import SystemPackage

func path(_ text: String) -> RemotePath { RemotePath(text.split(separator: "/").map(String.init)) }

extension MemoryPathRemote {
    /// Runs a test with a remote and a provider of its own.
    static func run(
        _ habits: Habits = Habits(), _ test: (MemoryPathRemote, ProviderSession) async throws -> Void
    ) async throws {
        let remote = MemoryPathRemote(habits: habits)
        let under = MemoryRemoteUnderTest(remote: remote)
        let manager = TestManager(domain: under.domain, stateDirectory: under.stateDirectory)
        let provider = PathAddressedProvider(
            remote: remote, manager: manager, ledger: nil, leftoverAge: 3600, leftoverPatience: .zero)
        try await test(remote, ProviderSession(provider: provider, manager: manager))
        await provider.invalidate()
    }

    /// Has directories listed in the middle of the next renaming.
    ///
    /// - Parameter error: with which the renaming ends that was made; nil where it is answered.
    /// - Returns: what was listed, to be asked for when the renaming is over.
    func listDuringMove(
        _ directories: [ItemIdentifier], by session: ProviderSession, failing error: FileProviderError? = nil
    ) -> () async throws -> [FileProviderItem] {
        let provider = session.provider
        let listings = Listings()
        duringMove.withLock { hook in
            hook = {
                listings.add(
                    directories.map { directory in
                        Task {
                            let enumerator = try provider.enumerator(
                                for: directory, request: FileProviderRequest(reason: .synchronization))
                            return try await enumerator.enumerateItems(
                                startingAt: .initial, suggestedPageSize: 10
                            ).items
                        }
                    })
                try? await Task.sleep(for: .milliseconds(50))
                if let error { throw error }
            }
        }
        return { try await listings.items() }
    }

    private final class Listings: Sendable {
        private let tasks = Mutex<[Task<[FileProviderItem], any Error>]>([])

        func add(_ new: [Task<[FileProviderItem], any Error>]) { tasks.withLock { $0 += new } }

        func items() async throws -> [FileProviderItem] {
            var items: [FileProviderItem] = []
            for task in tasks.withLock({ $0 }) { items += try await task.value }
            return items
        }
    }
}
