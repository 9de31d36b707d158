import FileProvider
import FileProviderTesting
import Synchronization
import SystemPackage
import Testing

@Suite struct ContentSourceTests {
    private struct Written: Error {}

    private final class Count: Sendable {
        private let value = Mutex(0)
        var now: Int { value.withLock { $0 } }
        func add() { value.withLock { $0 += 1 } }
    }

    @Test func aRangeIsClampedToTheContent() throws {
        let content = try TestContent(Array("0123456789".utf8))
        #expect(try content.source.read(at: 2, count: 3) == Array("234".utf8))
        #expect(try content.source.read(at: 8, count: 100) == Array("89".utf8))
        #expect(try content.source.read(at: 10, count: 5).isEmpty)
        #expect(try content.source.read(at: 100, count: 5).isEmpty)
        #expect(try content.source.read(at: 3, count: 0).isEmpty)
    }

    @Test func lastByteIsReturnedAfterConfirmation() throws {
        let count = Count()
        let content = try TestContent(Array("0123456789".utf8)) {
            count.add()
            throw Written()
        }
        #expect(try content.source.read(at: 0, count: 9).count == 9)
        #expect(count.now == 0)
        #expect(throws: Written.self) { try content.source.read(at: 9, count: 1) }
        #expect(throws: Written.self) { try content.source.read(at: 0, count: 10) }
        #expect(throws: Written.self) { try content.source.confirm() }
        #expect(count.now == 3)
    }

    @Test func aShortFileIsAnError() throws {
        let content = try TestContent(Array("0123456789".utf8))
        let source = ContentSource(descriptor: try content.source.descriptor.duplicate(), size: 11)
        #expect(try source.read(at: 0, count: 10).count == 10)
        #expect(throws: FileProviderError.self) { try source.read(at: 5, count: 6) }
        #expect(throws: FileProviderError.self) { try source.read(at: 10, count: 1) }
    }
}
