/// A call of a provider, under the name that the API gives it.
enum CallName: String, Sendable {
    case item
    case enumerator
    case enumerateItems
    case enumerateChanges
    case currentSyncAnchor
    case changeReports
    case changes
    case fetchContents
    case fetchThumbnails
    case createItem
    case modifyItem
    case deleteItem
    case receive
    case quota
    case importDidFinish

    var isChange: Bool { [.createItem, .modifyItem, .deleteItem].contains(self) }
}
