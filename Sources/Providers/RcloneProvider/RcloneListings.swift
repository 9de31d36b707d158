import FileProviderPaths
import Synchronization

/// The rests of listings that are given part by part: rclone lists a directory at once.
final class RcloneListings: Sendable {
    private let state = Mutex<(last: UInt64, open: [UInt64: ArraySlice<RemoteEntry>])>((0, [:]))
    private static let most = 64

    /// Takes the rest that a token stands for out; nil if it is not kept any more.
    func take(_ token: [UInt8]) -> ArraySlice<RemoteEntry>? {
        guard let number = UInt64(String(decoding: token, as: UTF8.self)) else { return nil }
        return state.withLock { $0.open.removeValue(forKey: number) }
    }

    /// The first entries, and a token for the others, which are kept. They are not copied: a directory has many parts.
    func part(of entries: ArraySlice<RemoteEntry>, _ limit: Int) -> RemoteListing {
        var part = RemoteListing(entries: Array(entries.prefix(limit)))
        guard entries.count > limit else { return part }
        let number = state.withLock { state in
            state.last += 1
            state.open[state.last] = entries.dropFirst(limit)
            if state.open.count > Self.most, let oldest = state.open.keys.min() { state.open[oldest] = nil }
            return state.last
        }
        part.next = Array(String(number).utf8)
        return part
    }
}
