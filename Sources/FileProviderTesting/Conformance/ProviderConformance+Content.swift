import FileProvider
import Foundation
import SystemPackage

/// Checks of content: exact bytes of the requested version, and cancellation.
extension ProviderConformance.Subject {
    private static let size: Int64 = (2 << 20) + 12_345

    private var content: [UInt8] { RemoteContent.pattern(size: Self.size, seed: 42)[0..<Self.size] }

    func checkContent() async throws {
        let content = content
        try await remote.write(content, to: "large")
        try await remote.write([], to: "empty")
        let large = try await session.find("large")
        try expect(large.documentSize == Self.size, "a file of \(Self.size) bytes has \(large.documentSize ?? -1)")
        let fetched = try await session.fetch(large.itemIdentifier, version: large.itemVersion.contentVersion)
        try expect(fetched.bytes == content, "the fetched content differs from the written content")
        try expect(
            fetched.item.itemVersion.contentVersion == large.itemVersion.contentVersion,
            "the fetched version differs from the listed one")
        let empty = try await session.find("empty")
        let nothing = try await session.fetch(empty.itemIdentifier)
        try expect(
            nothing.bytes.isEmpty && nothing.item.documentSize == 0,
            "an empty file is fetched with \(nothing.bytes.count) bytes and the size \(nothing.item.documentSize ?? -1)"
        )
    }

    func checkRanges() async throws {
        let content = content
        try await remote.write(content, to: "file")
        let file = try await session.find("file")
        let version = file.itemVersion.contentVersion
        for range in [0..<1, 1_000_000..<1_000_001, 4_095..<2_000_000, Self.size - 7..<Self.size] as [Range<Int64>] {
            try await expectContent(
                Array(content[Int(range.lowerBound)..<Int(range.upperBound)]), of: file.itemIdentifier,
                version: version, range: range, "in \(range)")
        }
    }

    func checkOldVersion() async throws {
        try await remote.write(Array("old".utf8), to: "file")
        let old = try await session.find("file")
        try await remote.write(Array("new, and longer".utf8), to: "file")
        try await expect(.versionNoLongerAvailable, from: "fetching an old version") {
            _ = try await session.fetch(old.itemIdentifier, version: old.itemVersion.contentVersion)
        }
        let new = try await session.find("file")
        try expect(new.itemIdentifier == old.itemIdentifier, "a file has another identifier after it was written")
        try await expectContent(
            Array("new, and longer".utf8), of: new.itemIdentifier, version: new.itemVersion.contentVersion,
            "of a new version")
    }

    func checkVersions() async throws {
        try await remote.write(Array("first".utf8), to: "file")
        let first = try await session.find("file")
        let again = try await session.find("file")
        try expect(first.itemVersion == again.itemVersion, "the version changes while nothing else does")
        try await remote.rename("file", to: "renamed")
        let renamed = try await session.find("renamed")
        try expect(
            renamed.itemVersion.contentVersion == first.itemVersion.contentVersion,
            "a rename changes the content version: every reader would fetch again")
        try await remote.write(Array("other".utf8), to: "renamed")
        let written = try await session.find("renamed")
        try expect(
            written.itemVersion.contentVersion != first.itemVersion.contentVersion,
            "the content version is the same for other content of the same length")
    }

    func checkCancellation() async throws {
        try await remote.write([UInt8](repeating: 7, count: 24 << 20), to: "file")
        let file = try await session.find("file").itemIdentifier
        let gate = Gate()
        let call = Task { [session] in
            let sink = SlowSink(gate: gate)
            _ = try await session.provider.fetchContents(
                for: file, version: nil, range: nil, request: session.request, into: sink)
        }
        try await gate.pass()
        let start = ContinuousClock.now
        call.cancel()
        let result = await call.result
        let duration = ContinuousClock.now - start
        try expect(duration < .seconds(1), "a cancelled fetch returns only after \(duration)")
        // A fetch that has delivered everything may succeed.
        if case .failure(let error) = result {
            let isCancellation =
                error is CancellationError || (error as? FileProviderError)?.code == .userCancelled
            try expect(isCancellation, "a cancelled fetch fails with \(error)")
        }
        let looked = try await session.item(file)
        try expect(looked.documentSize == 24 << 20, "after a cancelled fetch a lookup gives \(looked)")
    }

    private struct SlowSink: ContentSink {
        /// Opened by the first write.
        let gate: Gate

        func write(_ bytes: RawSpan, at offset: Int64) throws { wait() }
        func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws { wait() }

        private func wait() {
            gate.open()
            Thread.sleep(forTimeInterval: 0.1)
        }
    }

    func checkConcurrency() async throws {
        try await remote.makeDirectory("directory")
        for number in 0..<20 {
            try await remote.write([UInt8](repeating: UInt8(number), count: 10_000), to: "directory/\(number)")
        }
        let directory = try await session.find("directory").itemIdentifier
        let files = try await session.list(directory)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for file in files {
                group.addTask { [session] in
                    guard let number = UInt8(file.filename) else {
                        throw ConformanceFailure("a file is called '\(file.filename)'")
                    }
                    try await expectContent(
                        [UInt8](repeating: number, count: 10_000), of: file.itemIdentifier, "of a concurrent fetch")
                    let looked = try await session.item(file.itemIdentifier)
                    try expect(looked == file, "concurrent lookups give other items")
                    let listed = try await session.list(directory, pageSize: 3)
                    try expect(listed.count == 20, "concurrent listings give \(listed.count) of 20 items")
                }
            }
            try await group.waitForAll()
        }
    }
}
