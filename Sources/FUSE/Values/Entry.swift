import CFUSEShim

/// What a name stands for, and how long the kernel may believe it.
package struct Entry: Hashable, Sendable {
    package var node: NodeID
    /// Tells nodes apart that have had the same number; 0 where numbers are never used again.
    package var generation: UInt64
    package var attributes: FileAttributes
    package var entryLifetime: Lifetime
    package var attributesLifetime: Lifetime

    package init(
        attributes: FileAttributes, generation: UInt64 = 0, entryLifetime: Lifetime = .infinite,
        attributesLifetime: Lifetime = .infinite
    ) {
        node = attributes.node
        self.generation = generation
        self.attributes = attributes
        self.entryLifetime = entryLifetime
        self.attributesLifetime = attributesLifetime
    }

    /// The answer that a name does not exist, which the kernel remembers for a while; ENOENT is one it forgets.
    package static func absent(for lifetime: Lifetime) -> Entry {
        Entry(
            attributes: FileAttributes(node: .none, kind: .regular, permissions: 0), entryLifetime: lifetime,
            attributesLifetime: .zero)
    }

    var shim: fuseshim_entry {
        fuseshim_entry(
            node: node.rawValue, generation: generation, entry_lifetime: entryLifetime.shim,
            attributes_lifetime: attributesLifetime.shim, attributes: attributes.shim)
    }
}
