import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import S3Provider

/// Whether names are free, asked for one file or for many at once.
@Suite(.tags(.server)) struct FreeNamesTests {
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

    @Test("what was written here lately is not requested again for each listing of its directory that names share")
    func recentlyWritten() async throws {
        try await StrictStoreProgram.withRemote(["delay=0.05", "unlisted=top/d/old"]) { store, remote, _ in
            let client = remote.client
            _ = try await client.send { client.request("PUT", "top/d/old", body: .bytes([1])) }
            @Sendable func isFree(_ name: String) async throws -> Bool {
                do {
                    try await remote.tree.requireNothing(at: RemotePath(["d", name]))
                    return true
                } catch is RemoteConditionFailure {
                    return false
                }
            }
            func free(_ names: [String]) async throws -> Set<String> {
                try await withThrowingTaskGroup(of: String?.self) { group in
                    for name in names { group.addTask { try await isFree(name) ? name : nil } }
                    var found: Set<String> = []
                    for try await name in group { if let name { found.insert(name) } }
                    return found
                }
            }
            let names = (1...8).map { "\($0)" }
            #expect(try await free(names) == Set(names))
            #expect(try await !store.log().contains { $0.hasPrefix("HEAD") })
            #expect(try await free(["9", "old"]) == ["9"])
        }
    }
}
