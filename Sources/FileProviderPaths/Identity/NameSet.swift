/// The names in a directory, as hashes: a directory of a million names takes some megabytes. Two names have the same hash with
/// a probability of 1 in 2^64; such a name counts as present.
struct NameSet: Sendable {
    private var hashes: Set<UInt64> = []

    init() {}

    /// - Parameter names: their UTF-8.
    init(_ names: Set<[UInt8]>) { hashes = Set(names.map(Self.hash)) }

    mutating func insert(_ name: String) { hashes.insert(Self.hash(Array(name.utf8))) }

    func contains(_ name: String) -> Bool { hashes.contains(Self.hash(Array(name.utf8))) }

    /// Of the bytes: two Unicode forms of one text are two names. Seeded anew for each process.
    private static func hash(_ name: [UInt8]) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(name)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
