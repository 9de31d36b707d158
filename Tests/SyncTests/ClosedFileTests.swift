import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What is done once the last handle of a file is closed.
    @Suite struct ClosedFileTests {
        private static let count = 2 * BurstOfChanges.least

        private func removed(_ fixture: EngineFixture) async throws -> [InodeNumber] {
            try await fixture.list()
            var numbers: [InodeNumber] = []
            for index in 0..<Self.count {
                let identifier = ItemIdentifier(rawValue: "f\(index)")
                _ = try await fixture.read(identifier)
                let number = try fixture.number(identifier)
                fixture.open.insert(number)
                _ = try fixture.replica.change(open: fixture.open) { try $0.names.unlink("f\(index)", in: .root) }
                numbers.append(number)
            }
            return numbers
        }

        private func close(_ numbers: [InodeNumber], _ fixture: EngineFixture) {
            for number in numbers {
                fixture.open.remove(number)
                fixture.engine.inodeWasClosed(number)
            }
        }

        private func known(_ numbers: [InodeNumber], _ fixture: EngineFixture) throws -> [InodeNumber] {
            try numbers.filter { try fixture.replica.database.inode($0) != nil }
        }

        private func fill(_ tree: inout RemoteTree) {
            for index in 0..<Self.count {
                let name = "f\(index)"
                tree.addFile(name, content: RemoteContent(name), identifier: ItemIdentifier(rawValue: name))
            }
        }

        @Test("a removed file is kept until it is closed, and not after that, also when many are")
        func manyAreRemoved() async throws {
            try await EngineFixture.run(fill: fill) { fixture async throws in
                let numbers = try await removed(fixture)
                #expect(try known(numbers, fixture) == numbers)
                close(Array(numbers.dropFirst()), fixture)
                #expect(try await eventually { try known(numbers, fixture) == [numbers[0]] })
            }
        }

        @Test("what waits because programs are busy is done when the domain is closed") func stopping() async throws {
            try await EngineFixture.run(fill: fill) { fixture async throws in
                let numbers = try await removed(fixture)
                close(numbers, fixture)
                await fixture.engine.stop()
                #expect(try known(numbers, fixture) == [])
            }
        }
    }
}
