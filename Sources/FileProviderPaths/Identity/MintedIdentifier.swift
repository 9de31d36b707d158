import FileProvider

/// Identifiers for items of a remote that has none: made of the parent's identifier and the name, so that every listing of a
/// directory makes the same ones, and of the kind, so that a file in a directory's place is another item.
enum MintedIdentifier {
    /// The identifier of the item with a name in a directory.
    ///
    /// - Parameter attempt: other numbers give other identifiers, for when this one is another item's.
    static func make(_ kind: ItemKind, named name: String, in parent: ItemIdentifier, attempt: Int) -> ItemIdentifier {
        let seed = Array("\(attempt)/".utf8) + Array(parent.rawValue.utf8) + [0x2F] + Array(name.utf8)
        return ItemIdentifier(
            letter(of: kind) + StableDigest.of(seed).padded(to: 16, radix: 16)
                + StableDigest.of(seed, basis: 0x9e37_79b9_7f4a_7c15).padded(to: 16, radix: 16))
    }

    static func make(_ kind: ItemKind, remote identifier: String) -> ItemIdentifier {
        ItemIdentifier("=" + letter(of: kind) + identifier)
    }

    /// Whether the remote itself made an identifier.
    static func isRemote(_ identifier: ItemIdentifier) -> Bool { identifier.rawValue.utf8.first == UInt8(ascii: "=") }

    /// The item's identifier on the remote; nil where the remote has none.
    static func remotePart(of identifier: ItemIdentifier) -> String? {
        isRemote(identifier) && kind(of: identifier) != nil ? String(identifier.rawValue.dropFirst(2)) : nil
    }

    /// What kind of item an identifier is for; nil for one that was not made here.
    static func kind(of identifier: ItemIdentifier) -> ItemKind? {
        let bytes = isRemote(identifier) ? identifier.rawValue.utf8.dropFirst() : identifier.rawValue.utf8[...]
        return switch bytes.first {
        case UInt8(ascii: "f"): .file
        case UInt8(ascii: "d"): .directory
        case UInt8(ascii: "l"): .symbolicLink
        default: nil
        }
    }

    private static func letter(of kind: ItemKind) -> String {
        switch kind {
        case .file: "f"
        case .directory: "d"
        case .symbolicLink: "l"
        }
    }
}

extension RemoteEntry {
    /// The item's identifier, where the remote itself has one.
    var remoteIdentifier: ItemIdentifier? { stableIdentifier.map { MintedIdentifier.make(kind, remote: $0) } }
}
