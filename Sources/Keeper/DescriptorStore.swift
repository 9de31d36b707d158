import Glibc

/// The descriptors that the worker has stored, for its successor. The service manager, if there is one, has a copy of each.
package struct DescriptorStore: Sendable {
    package private(set) var entries: [StoredDescriptor]
    private let limit: Int
    private let manager: ServiceManager?

    /// - Parameters:
    ///   - limit: the maximum number of descriptors.
    ///   - inherited: those that the service manager has already.
    package init(
        limit: Int = Int(StoredDescriptor.most), inherited: [StoredDescriptor] = [], manager: ServiceManager? = nil
    ) {
        self.limit = limit
        self.manager = manager
        entries = inherited
    }

    /// Stores a descriptor, which the store owns from now on.
    ///
    /// - Returns: false if the store is full; the descriptor is then closed.
    package mutating func store(_ descriptor: Int32, as name: String) -> Bool {
        guard entries.count < limit else {
            close(descriptor)
            return false
        }
        entries.append(StoredDescriptor(name: name, descriptor: descriptor))
        manager?.store(descriptor, as: name)
        return true
    }

    package mutating func remove(_ name: String) {
        for entry in entries where entry.name == name { close(entry.descriptor) }
        entries.removeAll { $0.name == name }
        manager?.remove(name)
    }

    /// Closes all descriptors. The service manager keeps its copies.
    package mutating func closeAll() {
        for entry in entries { close(entry.descriptor) }
        entries = []
    }
}
