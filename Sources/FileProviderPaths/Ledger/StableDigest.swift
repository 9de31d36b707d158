/// A digest of bytes that is the same in every run, which Swift's own hash is not.
enum StableDigest {
    /// FNV-1a, and a last mixing.
    static func of(_ bytes: [UInt8], basis: UInt64 = 0xcbf2_9ce4_8422_2325) -> UInt64 {
        var hash = bytes.reduce(basis) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
        hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
        hash = (hash ^ (hash >> 33)) &* 0xc4ce_b9fe_1a85_ec53
        return hash ^ (hash >> 33)
    }
}
