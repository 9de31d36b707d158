import FileProviderPaths

/// Which preconditions a server honours. Each was seen to accept the right ETag and to refuse a wrong one: a server that
/// refuses the right one turns every overwrite into a conflict, and with one that accepts any, writes of other clients are
/// overwritten.
struct ConditionSupport: Sendable, Hashable {
    /// How an ETag is written in `If-Match`. RFC 9110 wants quotes; Ceph's gateway compares what it is sent with the ETag
    /// without quotes.
    enum Spelling: Sendable, Hashable, CaseIterable {
        case quoted
        case bare

        func value(_ tag: String) -> String {
            self == .quoted ? tag : String(tag.drop { $0 == "\"" }.prefix { $0 != "\"" })
        }
    }

    /// `If-None-Match: *` keeps a PUT from replacing an object.
    var onCreating = false
    /// `If-None-Match: *` keeps a copy from replacing an object.
    var onCopying = false
    /// `x-amz-copy-source-if-match`: only an object with the wanted ETag is copied.
    var comparesSources = false
    /// `If-Match` of a PUT; nil: it is not relied on, and the object is compared first.
    var replacing: Spelling?
    /// `If-Match` of a DELETE.
    var deleting: Spelling?
    /// The ETags of a request that deletes many objects.
    var deletingMany: Spelling?
    /// Listings show other ETags than requests for the objects: no precondition can be made of them.
    var listsOtherTags = false
    /// A written object had the same ETag in the response to the PUT, in a request for the object and in a listing.
    var answersWithListedTags = false
    /// The server has refused the ETag that an object has.
    var hasRefusedRightTag = false

    static let none = ConditionSupport()

    /// Whether a write is checked by the server itself.
    var onWriting: Bool { onCreating && replacing != nil }

    /// Whether the server itself checks this condition when an object is written.
    func honours(_ condition: RemoteCondition) -> Bool {
        switch condition {
        case .always, .empty: true
        case .absent: onCreating
        case .unchanged: replacing != nil
        }
    }

    /// What the user should know of the server.
    var peculiarities: [String] {
        var sentences: [String] = []
        let risk = "two clients that write at the same moment may overwrite each other"
        if listsOtherTags {
            sentences.append(
                "this server lists other ETags than it gives for the objects themselves: each object is compared before "
                    + "it is overwritten or deleted, and \(risk)")
        } else if !onCreating && replacing == nil {
            return ["this server checks no conditions: \(risk)"]
        } else if replacing == nil || hasRefusedRightTag {
            sentences.append(
                "this server does not accept an object's own ETag as the condition for overwriting it: each object is "
                    + "compared before it is overwritten, and \(risk)")
        } else if replacing == .bare {
            sentences.append("this server wants the ETags of conditions without quotes, and gets them so")
        }
        if deleting == nil, !listsOtherTags {
            sentences.append(
                "this server checks no conditions when it deletes: what another client writes in the moment in which it "
                    + "is deleted here may be lost")
        }
        return sentences
    }
}
