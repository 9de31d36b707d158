import FileProvider
import Replica

/// What the remote lists in a directory, beside the rows of the directory's items. Of an item that is as its row says only the identifier
/// is kept: there may be very many.
struct ComparedListing {
    /// Of items that have not been listed yet.
    private var rows: [ItemIdentifier: KnownChild]
    private let hasByteNames: Bool
    private var asKnown: Set<ItemIdentifier> = []
    /// The listed items that are not as their rows say, or have none.
    private(set) var others: [ItemIdentifier: FileProviderItem] = [:]

    init(rows: [ItemIdentifier: KnownChild], hasByteNames: Bool) {
        self.rows = rows
        self.hasByteNames = hasByteNames
    }

    /// Whether nothing differs, apart from what is being changed here.
    var isAsKnown: Bool { others.isEmpty && rows.values.allSatisfy(\.isChanging) }

    func contains(_ identifier: ItemIdentifier) -> Bool { asKnown.contains(identifier) || others[identifier] != nil }

    mutating func take(_ item: FileProviderItem) {
        let identifier = item.itemIdentifier
        if let row = rows.removeValue(forKey: identifier), !row.differs(from: item, hasByteNames: hasByteNames) {
            asKnown.insert(identifier)
        } else {
            others[identifier] = item
        }
    }
}

extension KnownChild {
    fileprivate func differs(from item: FileProviderItem, hasByteNames: Bool) -> Bool {
        isChanging || isHidden || item.reasonNotToShow(withByteNames: hasByteNames) != nil
            || !name.utf8.elementsEqual(item.filename.utf8)
            || kind == .file && contentVersion != item.itemVersion.contentVersion
    }
}
