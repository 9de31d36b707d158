import FileProvider

/// A local change on its way to the provider: the item as it was when it was sent, so that what changed since is seen.
package struct SentChange: Sendable {
    package var row: Int64
    package var inode: InodeNumber
    /// Nil for an item that the provider has not heard of.
    package var identifier: ItemIdentifier?
    package var item: FileProviderItem
    package var base: ItemVersion
    package var fields: ItemFields
    /// The content file's stamp when it was sent.
    package var contentStamp: Int64?
    /// SHA-256 of the content that is sent; nil for large content, and when none is sent.
    package var contentDigest: [UInt8]?
    /// Whether it may have been sent before, without an answer.
    package var isReplay: Bool
    /// A time before it was read from the database: every change up to then is part of it.
    package var preparedAt: FileTimestamp
    /// Whether it was sent under another name than its own, to make room: its place is still to be sent.
    package var isMovedAside = false
    /// How it is offered again, when its identifier was given up.
    package var offer: Offer?
}

package struct PendingDeletion: Hashable, Sendable {
    package var id: Int64
    package var identifier: ItemIdentifier
    package var kind: InodeKind
    package var parent: ItemIdentifier
    package var name: String
    package var version: ItemVersion
    package var since: FileTimestamp
    package var attempts: Int
    package var nextTry: FileTimestamp?
    package var code: String?
    package var message: String?
    /// Whether its identifier was given up: it has to be found on the remote by its name first.
    package var isToBeFound: Bool
    /// The inode that the item had: it gets the number back if the remote rejects the deletion.
    package var inode: InodeNumber?
}

/// How an item whose identifier was given up is offered to the provider.
package struct Offer: Hashable, Sendable {
    /// The reimport that it belongs to.
    package var round: Int64
    /// Whether nothing of its content is here: what the remote does not have then is gone.
    package var isDataless: Bool
    /// Whether the remote had it: then it is only to be recognized at first, and made when it is not there.
    package var wasKnown: Bool
    /// Whether it is offered where the remote had it, and not where it was moved to since.
    package var isAtOrigin: Bool
    /// Whether its name is never sent: it is only recognized, and stays on this machine where the remote does not have it.
    package var isIgnored: Bool
}
