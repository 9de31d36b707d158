import Glibc

/// The descriptors that the worker has stored, for its successor.
package struct DescriptorStore: Sendable {
    package struct Entry: Hashable, Sendable {
        package var name: String
        package var descriptor: Int32
    }

    package private(set) var entries: [Entry] = []
    private let limit: Int

    /// - Parameter limit: the maximum number of descriptors.
    package init(limit: Int = 1024) {
        self.limit = limit
    }

    /// Stores a descriptor, which the store owns from now on.
    ///
    /// - Returns: false if the store is full; the descriptor is then closed.
    package mutating func store(_ descriptor: Int32, as name: String) -> Bool {
        guard entries.count < limit else {
            close(descriptor)
            return false
        }
        entries.append(Entry(name: name, descriptor: descriptor))
        return true
    }

    /// Closes all descriptors with a name.
    package mutating func remove(_ name: String) { remove { $0.name == name } }

    package mutating func removeAll() { remove { _ in true } }

    private mutating func remove(where isRemoved: (Entry) -> Bool) {
        for entry in entries where isRemoved(entry) { close(entry.descriptor) }
        entries.removeAll(where: isRemoved)
    }
}
