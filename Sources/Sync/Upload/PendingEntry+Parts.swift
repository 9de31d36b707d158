import FileProvider
import Replica

extension PendingEntry {
    /// The fields of the calls that send the changes, one after each refusal: first all in one call, then the content, the place and the
    /// attributes each alone. A remote that refuses one of them refuses the whole call.
    ///
    /// The place waits for content that is pending: a move may give the item another version, which content that is based on the present
    /// one would then seem to overwrite.
    ///
    /// - Parameter failure: the last one. One that may pass by itself says nothing of the fields.
    func calls(after failure: FileProviderError.Code?) -> [ItemFields] {
        var fields = item.changedFields
        if hasPendingChildren { fields.remove(.contentModificationDate) }
        guard item.identifier != nil, let failure, failure.reaction != .retry else { return [fields] }
        let place = fields.intersection([.filename, .parentItemIdentifier])
        let content = fields.contains(.contents) ? fields.intersection([.contents, .contentModificationDate]) : []
        let parts = [content.isEmpty ? place : content, fields.subtracting(place).subtracting(content)]
        return [fields] + parts.filter { !$0.isEmpty && $0 != fields }
    }
}
