import FileProvider

extension ItemRecord {
    /// The identifier under which an item that was made here is offered to the provider.
    package var placeholder: ItemIdentifier {
        ItemIdentifier(Self.placeholderPrefix + String(id, radix: 16) + "." + String(template, radix: 16))
    }

    static let placeholderPrefix = "yonder.new."

    /// What makes an item's template identifier one that no other item ever has, also when a domain is made anew.
    static func newTemplate() -> Int64 { Int64.random(in: 1 ... .max) }
}

extension ItemIdentifier {
    /// Whether the provider has never given it.
    package var isPlaceholder: Bool { rawValue.utf8.starts(with: ItemRecord.placeholderPrefix.utf8) }
}

extension PendingDeletion {
    /// Whether the provider has never given the item an identifier, as far as is known.
    package var isPlaceholder: Bool { identifier.isPlaceholder }

    /// What stands in for the identifier of something that was removed here and has to be found on the remote.
    static func token(ofDeletion id: Int64) -> ItemIdentifier {
        ItemIdentifier(ItemRecord.placeholderPrefix + "d" + String(id))
    }
}
