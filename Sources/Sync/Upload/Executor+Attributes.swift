import FileNames
import FileProvider
import Replica

/// Extended attributes whose names are not UTF-8: a provider whose names are text cannot have them, and they stay here.
extension Executor {
    /// The item as the provider is told of it.
    func told(_ sent: SentChange) -> FileProviderItem {
        var item = sent.item
        if hasUntold(item) {
            item.extendedAttributes = item.extendedAttributes?.filter { FileNameText.isUTF8($0.key) }
        }
        return item
    }

    /// The changed fields of which the provider is not told everything.
    func withheld(from sent: SentChange) -> ItemFields {
        hasUntold(sent.item) ? sent.fields.intersection(.extendedAttributes) : []
    }

    private func hasUntold(_ item: FileProviderItem) -> Bool {
        guard !calls.provider.features.byteNames, let attributes = item.extendedAttributes else { return false }
        return !attributes.keys.allSatisfy(FileNameText.isUTF8)
    }
}
