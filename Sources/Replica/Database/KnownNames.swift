/// A time in which no transaction changes a name or a directory, but for the files that are added.
struct NameEra: Hashable, Sendable {
    private var number: UInt64 = 0

    /// A transaction may change names from now on.
    mutating func end() { number &+= 1 }
}

/// All names of directories in which files are being created. The kernel looks up a name before it creates a file; this
/// answers that it is not there without a query.
///
/// The names are valid in the era in which they were read.
struct KnownNames {
    /// Directories with more names are not read.
    static let most = 512
    /// Of all directories together.
    private static let mostOfAll = 1 << 15

    private struct Names {
        let era: NameEra
        /// Nil where there are too many.
        var all: Set<[UInt8]>?
    }

    private var directories: [InodeNumber: Names] = [:]
    private var count = 0

    /// Whether a directory's names were found out in an era, or were too many.
    func hasLooked(at directory: InodeNumber, in era: NameEra) -> Bool {
        directories[directory]?.era == era
    }

    func lacks(_ name: [UInt8], in directory: InodeNumber, _ era: NameEra) -> Bool {
        guard let names = directories[directory], names.era == era, let all = names.all else { return false }
        return !all.contains(name)
    }

    /// - Parameter names: all of a directory's; more than ``most`` are not kept.
    mutating func keep(_ names: some Sequence<[UInt8]>, of directory: InodeNumber, _ era: NameEra) {
        let all = Set(names)
        remove(directory)
        let isKept = all.count <= Self.most
        directories[directory] = Names(era: era, all: isKept ? all : nil)
        if isKept { grow(by: all.count) }
    }

    /// A directory has got one more.
    mutating func insert(_ name: [UInt8], in directory: InodeNumber) {
        guard directories[directory]?.all?.insert(name).inserted == true else { return }
        grow(by: 1)
    }

    private mutating func remove(_ directory: InodeNumber) {
        count -= directories.removeValue(forKey: directory)?.all?.count ?? 0
    }

    private mutating func grow(by names: Int) {
        count += names
        guard count > Self.mostOfAll else { return }
        directories = [:]
        count = 0
    }
}
