import Synchronization

/// The index of an archive, cached until the archive changes.
final class TarIndexCache: Sendable {
    private let known = Mutex<(stamp: TarArchive.Stamp, index: TarIndex)?>(nil)

    /// The index; reads the archive if needed.
    ///
    /// - Throws: as ``TarIndex``.
    func index(of path: String, warn: (String) -> Void) throws -> TarIndex {
        let archive = try TarArchive(at: path)
        if let known = known.withLock({ $0 }), known.stamp == archive.stamp { return known.index }
        let index = try TarIndex(reading: archive, warn: warn)
        known.withLock { $0 = (archive.stamp, index) }
        return index
    }
}
