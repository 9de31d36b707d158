import FileProvider
import Synchronization

/// Reports entries of the remote that are not shown: each once, however often its directory is listed.
final class UnshownEntries: Sendable {
    private let manager: any FileProviderManager
    /// When they are too many, some are reported again.
    private let reported = Mutex<Set<RemotePath>>([])
    private static let most = 10_000
    private static let longestName = 40

    init(manager: any FileProviderManager) {
        self.manager = manager
    }

    /// Reports an entry with its place, of which a long name is only the beginning.
    func report(_ name: String, in directory: RemotePath, _ reason: String) {
        let isNew = reported.withLock { reported in
            if reported.count == Self.most { reported = [] }
            return reported.insert(directory.appending(name)).inserted
        }
        guard isNew else { return }
        var beginning = String(String.UnicodeScalarView(name.unicodeScalars.prefix(Self.longestName)))
        if beginning.utf8.count < name.utf8.count { beginning += "…" }
        manager.report("\(reason): '\(beginning)' in '/\(directory.names.joined(separator: "/"))'")
    }
}
