/// A password in an address, as in `https://USER:PASSWORD@HOST/`. Sources and options are stored and shown, so that none of them may
/// have one.
package enum AddressPassword {
    /// The schemes of addresses with a user. What follows that of a program's source, only the program knows.
    private static let schemes: Set = [
        "http", "https", "webdav", "webdavs", "dav", "davs", "sftp", "ssh", "ftp", "ftps", "s3",
    ]

    /// Whether an address has a password, with or without a scheme before it.
    package static func isIn(_ address: String) -> Bool {
        var rest = address[...]
        if let separator = address.firstRange(of: "://") {
            let scheme = address[..<separator.lowerBound].reversed().prefix { $0.isLetter || $0.isNumber }.reversed()
            guard schemes.contains(String(scheme).lowercased()) else { return false }
            rest = address[separator.upperBound...]
        }
        let authority = rest.prefix { !"/?#".contains($0) }
        if let at = authority.lastIndex(of: "@") { return authority[..<at].contains(":") }
        // A slash in the password: what follows the colon is no port.
        guard rest.contains("@"), authority.first != "[", let colon = authority.firstIndex(of: ":")
        else { return false }
        return !authority[colon...].dropFirst().allSatisfy(\.isNumber)
    }
}
