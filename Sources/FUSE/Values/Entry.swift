import CFUSEShim

/// The node of a name, and how long the kernel may cache the answer.
package struct Entry: Hashable, Sendable {
    package var node: NodeID
    package var attributes: FileAttributes
    package var entryLifetime: Lifetime
    package var attributesLifetime: Lifetime

    package init(
        attributes: FileAttributes, entryLifetime: Lifetime = .infinite, attributesLifetime: Lifetime = .infinite
    ) {
        node = attributes.node
        self.attributes = attributes
        self.entryLifetime = entryLifetime
        self.attributesLifetime = attributesLifetime
    }

    /// A negative entry: the kernel caches that the name does not exist. It does not cache ENOENT.
    package static func absent(for lifetime: Lifetime) -> Entry {
        Entry(
            attributes: FileAttributes(node: .none, kind: .regular, permissions: 0), entryLifetime: lifetime,
            attributesLifetime: .zero)
    }

    var shim: fuseshim_entry {
        // Numbers are never reused, so that no generation tells their nodes apart.
        fuseshim_entry(
            node: node.rawValue, generation: 0, entry_lifetime: entryLifetime.shim,
            attributes_lifetime: attributesLifetime.shim, attributes: attributes.shim)
    }
}
