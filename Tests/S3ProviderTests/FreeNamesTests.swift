import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@testable import S3Provider

/// Whether names are free, asked for one file or for many at once.
@Suite struct FreeNamesTests {
    private final class Directory: Sendable {
        let names = FreeNames()
        let gate = Gate()
        let listings = Mutex(0)
        let lookUps = Mutex<[String]>([])
        let isTooLarge: Bool

        init(isTooLarge: Bool = false) {
            self.isTooLarge = isTooLarge
        }

        /// Only "d/there" has its name.
        func isFree(_ key: String) async throws -> Bool {
            try await names.areFree([key], in: "d/") { [self] in
                listings.withLock { $0 += 1 }
                try await Task.sleep(for: .milliseconds(5))
                return isTooLarge ? nil : [KeyBytes("d/there")]
            } lookUp: { [self] in
                lookUps.withLock { $0.append(key) }
                if key == "d/first" { try await gate.pass() }
                return key != "d/there"
            }
        }

        /// Asks for many names while the first one is looked up.
        func askForMany(_ keys: [String]) async throws -> [String: Bool] {
            try await withThrowingTaskGroup(of: (String, Bool).self) { group in
                group.addTask { try await ("d/first", self.isFree("d/first")) }
                #expect(await eventually { self.gate.waiting == 1 })
                for key in keys { group.addTask { try await (key, self.isFree(key)) } }
                var found: [String: Bool] = [:]
                for try await (key, isFree) in group {
                    found[key] = isFree
                    if found.count == keys.count { gate.open() }
                }
                return found
            }
        }
    }

    @Test func aNameThatIsAskedForAloneIsLookedUp() async throws {
        let directory = Directory()
        for key in ["d/one", "d/there"] { #expect(try await directory.isFree(key) == (key == "d/one")) }
        #expect(directory.listings.withLock { $0 } == 0)
        #expect(directory.lookUps.withLock { $0 } == ["d/one", "d/there"])
    }

    @Test func manyNamesShareAListing() async throws {
        let directory = Directory()
        let keys = (0..<20).map { "d/\($0)" }
        let found = try await directory.askForMany(keys + ["d/there"])
        #expect(found.filter { !$0.value }.keys.sorted() == ["d/there"])
        // One is under way when most of them ask; they wait for the next.
        #expect((1...3).contains(directory.listings.withLock { $0 }))
        #expect(directory.lookUps.withLock { $0.sorted() } == ["d/first", "d/there"])
    }

    @Test func namesInALargeDirectoryAreLookedUp() async throws {
        let directory = Directory(isTooLarge: true)
        let keys = (0..<20).map { "d/\($0)" }
        #expect(try await directory.askForMany(keys).allSatisfy(\.value))
        #expect(directory.lookUps.withLock { $0.count } == 21)
    }
}
