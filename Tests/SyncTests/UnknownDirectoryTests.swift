import FileProvider
import FileProviderTesting
import Replica
import Testing

@testable import Sync

extension EngineTests {
    /// The directories above the items of a batch that are not known here.
    @Suite struct UnknownDirectoryTests {
        private static let depth = 100

        /// Directories in each other.
        private func makeTree(in top: ItemIdentifier) -> [FileProviderItem] {
            (0..<Self.depth).map { level in
                FileProviderItem(
                    itemIdentifier: ItemIdentifier("d\(level)"),
                    parentItemIdentifier: level == 0 ? top : ItemIdentifier("d\(level - 1)"), filename: "d",
                    kind: .directory, itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"))
            }
        }

        private func unknown(_ fixture: EngineFixture, _ tree: [FileProviderItem]) -> UnknownDirectories {
            UnknownDirectories(
                in: fixture.replica.database,
                upcoming: Dictionary(uniqueKeysWithValues: tree.map { ($0.itemIdentifier, $0) }))
        }

        private func lookUp(_ identifier: ItemIdentifier, _ fixture: EngineFixture) async throws -> FileProviderItem? {
            try await RemoteLookup(context: fixture.engine.context).lookUp(identifier, for: fixture.request)
        }

        @Test("the items of a deep tree have the directories above them looked up once") func found() async throws {
            try await EngineFixture.run { fixture in
                let tree = makeTree(in: .rootContainer)
                var directories = unknown(fixture, tree)
                var found: [FileProviderItem] = []
                for item in tree.reversed() {
                    found += try await directories.find(above: item) { try await lookUp($0, fixture) }
                }
                #expect(found == Array(tree.dropLast()))
                #expect(directories.found.count == Self.depth - 1)
            }
        }

        @Test("a directory that the remote does not have is looked up once for all below it") func lost() async throws {
            try await EngineFixture.run { fixture in
                let tree = makeTree(in: "gone")
                var directories = unknown(fixture, tree)
                for item in tree {
                    let found = try await directories.find(above: item) { try await lookUp($0, fixture) }
                    #expect(found.isEmpty)
                }
                #expect(fixture.provider.log.calls(of: .item, "gone").count == 1)
            }
        }
    }
}
