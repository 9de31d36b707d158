import FileProvider

/// One fetch from an in-memory remote, with scripted faults.
struct ContentFetch {
    let remote: InMemoryState
    let identifier: ItemIdentifier
    let version: [UInt8]?
    let effects: [FaultScript.Effect]

    func run(range: Range<Int64>?, into sink: any ContentSink) async throws -> FileProviderItem {
        let tree = remote.tree
        guard let item = tree[identifier], item.kind == .file, let content = tree.content(of: identifier) else {
            throw FileProviderError.noSuchItem(identifier)
        }
        guard version == nil || version == item.itemVersion.contentVersion else {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        let wanted = (range ?? 0..<content.size).clamped(to: 0..<content.size)
        var end = wanted.upperBound
        for case .cutFetch(let count) in effects { end = min(end, wanted.lowerBound + count) }
        var offset = wanted.lowerBound
        while offset < end {
            let next = min(end, offset + remote.options.chunkSize, nextStop(after: offset, start: wanted.lowerBound))
            if remote.options.chunkDelay > .zero { try await Task.sleep(for: remote.options.chunkDelay) }
            try Task.checkCancellation()
            try checkVersion(item)
            try sink.write(content[offset..<next], at: offset)
            offset = next
            try await stop(after: offset - wanted.lowerBound)
        }
        try checkVersion(item)
        for case .surplus(let count) in effects {
            try sink.write([UInt8](repeating: 0x21, count: Int(count)), at: wanted.upperBound)
        }
        var answer = item
        for case .contentVersion(let version) in effects { answer.itemVersion.contentVersion = version }
        return answer
    }

    /// The remote keeps only the current version of a file.
    private func checkVersion(_ item: FileProviderItem) throws {
        guard let now = remote.tree[identifier] else { throw FileProviderError.noSuchItem(identifier) }
        guard now.itemVersion.contentVersion == item.itemVersion.contentVersion else {
            throw FileProviderError(.versionNoLongerAvailable, item: now)
        }
    }

    /// The offset of the next scripted fault.
    private func nextStop(after offset: Int64, start: Int64) -> Int64 {
        effects.compactMap { effect -> Int64? in
            switch effect {
            case .holdFetch(let count, _), .failFetch(let count, _): start + count
            default: nil
            }
        }.filter { $0 > offset }.min() ?? .max
    }

    private func stop(after count: Int64) async throws {
        for effect in effects {
            switch effect {
            case .holdFetch(count, let gate): try await gate.pass()
            case .failFetch(count, let error): throw error
            default: break
            }
        }
    }
}
