/// The condition of a change. A remote that cannot check it in one step with the change looks first.
public enum RemoteCondition: Hashable, Sendable {
    /// The change is made in any case.
    case always
    /// Nothing is at the path.
    case absent
    /// The file at the path has this tag.
    case unchanged(tag: [UInt8])
    /// The directory to delete contains nothing but hidden names. A remote that deletes it with one request need not look;
    /// see ``RemoteTraits/checksEmptiness``.
    case empty

    package func isOf(_ tag: [UInt8]?) -> Bool { tag.map { self == .unchanged(tag: $0) } ?? false }
}

/// The error of a change whose condition did not hold. Nothing was changed.
public struct RemoteConditionFailure: Error, Hashable, Sendable {
    /// The present entry; nil if nothing is there.
    public var present: RemoteEntry?

    /// A failure because of the present entry.
    public init(present: RemoteEntry?) {
        self.present = present
    }
}

extension RemoteConditionFailure: CustomStringConvertible {
    public var description: String {
        present.map { "the condition does not hold: '\($0.name)' is there" }
            ?? "the condition does not hold: nothing is there"
    }
}
