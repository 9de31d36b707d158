import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// Where a server keeps what a user has deleted, by Nextcloud's documentation of its trash bin and by what ownCloud 10 does.
struct TrashBin: Hashable, Sendable {
    enum Kind: String, Codable, Sendable, CaseIterable {
        /// `trashbin/USER/trash`, from where items are moved to `trashbin/USER/restore`: the server knows where they were.
        case nextcloud
        /// `trash-bin/USER`, from where items are moved to where they are wanted. It lets nobody read them.
        case ownCloud
    }

    let kind: Kind
    /// What is in it; ends in a slash.
    let items: HTTPURL
    /// To where items are moved that go back to where they were; ends in a slash.
    let restored: HTTPURL
    /// All files of the user; ends in a slash.
    let files: HTTPURL
    /// The names that lead from there to the collection that is mounted.
    let mounted: [String]

    /// - Returns: nil for an address that does not say who the user is.
    init?(_ kind: Kind, of base: HTTPURL) {
        let parts = base.path.split(separator: "/", omittingEmptySubsequences: true)
        guard
            let files = parts.indices.first(where: { index in
                parts[index] == "files" && index > 0 && parts[index - 1] == "dav" && index + 1 < parts.count
            })
        else { return nil }
        func address(_ names: [Substring]) -> HTTPURL {
            var url = base
            url.path = "/" + (parts[..<files] + names).joined(separator: "/") + "/"
            return url
        }
        let user = parts[files + 1]
        self.kind = kind
        self.files = address(["files", user])
        switch kind {
        case .nextcloud:
            items = address(["trashbin", user, "trash"])
            restored = address(["trashbin", user, "restore"])
        case .ownCloud:
            items = address(["trash-bin", user])
            restored = self.files
        }
        var names: [String] = []
        for part in parts[(files + 2)...] {
            guard let bytes = PercentEncoding.decode(part), let name = String(validating: bytes, as: UTF8.self) else {
                return nil
            }
            names.append(name)
        }
        mounted = names
    }

    /// The address of something in the bin. Without a name it would be the whole bin.
    func url(of place: [String], isDirectory: Bool = false) -> HTTPURL { items.appending(place, isDirectory) }

    /// The address of one of the user's files, by the names from all of them.
    func url(ofFile names: [String], isDirectory: Bool = false) -> HTTPURL { files.appending(names, isDirectory) }

    /// Whether something that lay at a path among the user's files lay in the collection that is mounted.
    func isMounted(_ names: [String]) -> Bool {
        names.count > mounted.count && RemotePath(Array(names.prefix(mounted.count))) == RemotePath(mounted)
    }

    /// Whether a name can lead to something in a bin, and to nothing else.
    static func isName(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 == 0x2F || $0 == 0 }
    }

    /// The names in a path as servers say where something was; nil for what is none.
    static func names(in location: String) -> [String]? {
        let names = location.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        return !names.isEmpty && names.allSatisfy(isName) ? names : nil
    }
}

extension HTTPURL {
    fileprivate func appending(_ names: [String], _ isDirectory: Bool) -> HTTPURL {
        var url = self
        url.path += names.map { PercentEncoding.encode($0) }.joined(separator: "/")
        if isDirectory, !names.isEmpty { url.path += "/" }
        return url
    }
}

/// Stores which trash bin the server was found to have: the domain's features are wanted before the server can be asked.
final class TrashBinStore: Sendable {
    private let store: ReportingStore
    private let base: HTTPURL
    private let found: Mutex<TrashBin?>
    private static let namespace = ProviderStoreNamespace<TrashBin.Kind>("webdav.trashbin")
    private static let key: ProviderStoreKey = "kind"

    /// - Parameter findings: those of a probe that was made just now, which take precedence.
    init(in store: ReportingStore, base: HTTPURL, findings: WebDAVProvider.Findings?) {
        self.store = store
        self.base = base
        let kind = store.attempt { try $0.get(Self.key, in: Self.namespace) } ?? nil
        found = Mutex(kind.flatMap { TrashBin($0, of: base) })
        if let findings { note(findings.trashBin) }
    }

    var bin: TrashBin? { found.withLock { $0 } }

    func note(_ kind: TrashBin.Kind?) {
        found.withLock { found in
            let bin = kind.flatMap { TrashBin($0, of: base) }
            guard bin != found else { return }
            found = bin
            store.attempt { store in
                if let kind {
                    try store.put(kind, at: Self.key, in: Self.namespace)
                } else {
                    try store.remove(Self.key, in: Self.namespace)
                }
            }
        }
    }
}

/// Keeps apart what would push something out of a trash bin. There an item is called by its name and the second in which it
/// was deleted, and the second of two with one name and one second takes the place of the first, or is not kept.
actor DeletionTimes {
    private struct Last {
        var underWay: Int
        /// Whether somebody wants it kept.
        var isKept: Bool
        var endedAt: ContinuousClock.Instant
    }

    private var last: [[UInt8]: Last] = [:]
    /// More than a second: then the server's clock says another.
    private static let distance = Duration.milliseconds(1100)
    private static let step = Duration.milliseconds(20)
    /// Longer names are cut in the bin.
    private static let longestName = 230

    /// Does what deletes something, when nothing of its name is in the way.
    ///
    /// - Parameter isKept: it has to be in the bin afterwards.
    func run<Value: Sendable>(_ name: String, isKept: Bool, _ body: @Sendable () async throws -> Value) async throws
        -> Value
    {
        let key = name.utf8.count > Self.longestName ? [] : Array(name.utf8)
        while let before = last[key] {
            let isFar = before.underWay == 0 && ContinuousClock.now - before.endedAt > Self.distance
            if isFar || !isKept && !before.isKept { break }
            try await Task.sleep(for: Self.step)
        }
        if last.count > 1000 {
            last = last.filter { $0.value.underWay > 0 || .now - $0.value.endedAt <= Self.distance }
        }
        last[key] = Last(underWay: (last[key]?.underWay ?? 0) + 1, isKept: isKept, endedAt: .now)
        defer { last[key] = Last(underWay: (last[key]?.underWay ?? 1) - 1, isKept: isKept, endedAt: .now) }
        return try await body()
    }
}
