import FileProvider
import Synchronization
import TestSupport
import Testing

@testable import HTTPTransport

@Suite struct LongCopiesTests {
    private func target(_ name: String) -> HTTPURL { HTTPURL(isSecure: false, host: "example.org", path: "/" + name) }

    /// Copies a file on a server that needs some time for it.
    ///
    /// - Parameter time: nil for more than an ordinary request has.
    /// - Returns: whether the request was long.
    private func copy(_ size: Int64?, to name: String, _ copies: LongCopies, in time: Duration?) async -> Bool {
        let wasLong = Mutex(false)
        _ = await failure {
            try await copies.copying(size, to: target(name)) { isLong in
                wasLong.withLock { $0 = isLong }
                guard let time else { throw FileProviderError(.timedOut) }
                try await Task.sleep(for: time)
            }
        }
        return wasLong.withLock { $0 }
    }

    @Test("HTTP-1: once a small copy has taken longer than ordinary requests may, others as large are long at once")
    func slowServer() async {
        let copies = LongCopies(ordinaryTime: .milliseconds(10))
        let slow = Duration.milliseconds(50)
        #expect(await !copy(1000, to: "a", copies, in: nil))
        #expect(await copy(1000, to: "a", copies, in: slow))
        #expect(await copy(1000, to: "b", copies, in: slow))
        #expect(await copy(2000, to: "c", copies, in: slow))
        #expect(await !copy(999, to: "d", copies, in: .zero))
        #expect(await copy(LongCopies.largestShort + 1, to: "e", copies, in: .zero))
        #expect(await copy(1000, to: "f", copies, in: slow))
    }

    @Test("HTTP-1: a copy whose answer was lost has only its own next attempt long, and a fast one ends a slow time")
    func fastServer() async {
        let copies = LongCopies(ordinaryTime: .seconds(1))
        #expect(await !copy(1000, to: "a", copies, in: nil))
        #expect(await copy(1000, to: "a", copies, in: .zero))
        #expect(await !copy(1000, to: "a", copies, in: .zero))
        #expect(await !copy(1000, to: "b", copies, in: .zero))
        #expect(await copy(nil, to: "c", copies, in: .zero))
        // Slow, and then not any more.
        #expect(await !copy(1000, to: "d", copies, in: nil))
        #expect(await copy(1000, to: "d", copies, in: .milliseconds(1100)))
        #expect(await copy(1000, to: "e", copies, in: .zero))
        #expect(await !copy(1000, to: "f", copies, in: .zero))
    }
}
