import FileProvider

/// One fetch from or upload to an in-memory remote, with scripted faults.
struct ContentTransfer {
    let provider: InMemoryProvider
    let effects: [FaultScript.Effect]

    func fetch(
        _ identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let tree = provider.tree
        guard let item = tree[identifier], item.kind == .file, let content = tree.content(of: identifier) else {
            throw FileProviderError.noSuchItem(identifier)
        }
        guard version == nil || version == item.itemVersion.contentVersion else {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        let wanted = (range ?? 0..<content.size).clamped(to: 0..<content.size)
        var length = wanted.upperBound - wanted.lowerBound
        for case .cutFetch(let count) in effects { length = min(length, count) }
        for case .blockFetch(let gate) in effects {
            try await Task.detached {
                try await gate.pass()
                try sink.write(content[wanted], at: wanted.lowerBound)
            }.value
            return item
        }
        if provider.options.confirmsVersions { sink.confirmVersion() }
        var (done, confirmed): (Int64, Int64) = (0, 0)
        while done < length {
            let start = wanted.lowerBound + done
            let next = try await next(after: done, of: length, atOnce: provider.options.chunkSize)
            try checkVersion(item)
            try sink.write(content[start..<wanted.lowerBound + next], at: start)
            done = next
            if let interval = provider.options.confirmationInterval, done - confirmed >= interval {
                try checkVersion(item)
                sink.confirmVersion(of: wanted.lowerBound..<wanted.lowerBound + done)
                confirmed = done
            }
            try await stop(after: done)
        }
        try checkVersion(item)
        for case .surplus(let count) in effects {
            try sink.write([UInt8](repeating: 0x21, count: Int(count)), at: wanted.upperBound)
        }
        var answer = item
        for case .contentVersion(let version) in effects { answer.itemVersion.contentVersion = version }
        return answer
    }

    func upload(_ source: ContentSource) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        var done: Int64 = 0
        try await stop(after: 0)
        // The source is read at least once, because it may have grown.
        repeat {
            let next = try await next(after: done, of: source.size, atOnce: max(1, provider.options.uploadChunkSize))
            bytes += try source.read(at: done, count: Int(next - done))
            done = next
            try await stop(after: done)
        } while done < source.size
        try Task.checkCancellation()
        return bytes
    }

    /// The remote keeps only the current version of a file.
    private func checkVersion(_ item: FileProviderItem) throws {
        guard let now = provider.tree[item.itemIdentifier] else {
            throw FileProviderError.noSuchItem(item.itemIdentifier)
        }
        guard now.itemVersion.contentVersion == item.itemVersion.contentVersion else {
            throw FileProviderError(.versionNoLongerAvailable, item: now)
        }
    }

    /// The end of the next chunk, which does not pass a scripted fault. Waits for the chunk.
    private func next(after done: Int64, of length: Int64, atOnce: Int64) async throws -> Int64 {
        if provider.options.chunkDelay > .zero { try await Task.sleep(for: provider.options.chunkDelay) }
        try Task.checkCancellation()
        let faults = effects.compactMap { effect -> Int64? in
            switch effect {
            case .holdTransfer(let count, _), .failTransfer(let count, _): count > done ? count : nil
            default: nil
            }
        }
        return min(length, done + atOnce, faults.min() ?? .max)
    }

    private func stop(after done: Int64) async throws {
        for effect in effects {
            switch effect {
            case .holdTransfer(done, let gate): try await gate.pass()
            case .failTransfer(done, let error): throw error
            default: break
            }
        }
    }
}
