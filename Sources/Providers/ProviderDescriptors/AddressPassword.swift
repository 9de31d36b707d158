/// A password in an address, as in `https://USER:PASSWORD@HOST/`. Sources and options are stored and shown, so that none of them may
/// have one.
package enum AddressPassword {
    /// Whether an address has a password, with or without a scheme before it.
    package static func isIn(_ address: String) -> Bool {
        let rest = address.firstRange(of: "://").map { address[$0.upperBound...] } ?? address[...]
        let authority = rest.prefix { !"/?#".contains($0) }
        if let at = authority.lastIndex(of: "@") { return authority[..<at].contains(":") }
        // A slash in the password: what follows the colon is no port.
        guard rest.contains("@"), authority.first != "[", let colon = authority.firstIndex(of: ":")
        else { return false }
        return !authority[colon...].dropFirst().allSatisfy(\.isNumber)
    }
}
