import Replica

/// The running prefetches, and the items below which none may start: prefetching would bring back what is being
/// evicted.
struct PrefetchTasks: Sendable {
    private let replica: Replica
    private var running: [InodeNumber: Task<Void, Never>] = [:]
    private var leftAlone: [InodeNumber] = []

    init(replica: Replica) { self.replica = replica }

    /// How many are under way.
    var count: Int { running.count }

    /// Whether nothing may begin for an item.
    func leavesAlone(_ number: InodeNumber) -> Bool {
        leftAlone.contains { isBelow(number, $0) }
    }

    mutating func began(_ task: Task<Void, Never>, for number: InodeNumber) { running[number] = task }

    mutating func ended(for number: InodeNumber) { running[number] = nil }

    /// From now on nothing may begin at or below an item, until ``allow(_:)``.
    ///
    /// - Returns: what is ending there, for the caller to wait for.
    mutating func leaveAlone(_ number: InodeNumber) -> [Task<Void, Never>] {
        leftAlone.append(number)
        let ending = running.filter { isBelow($0.key, number) }.map(\.value)
        for task in ending { task.cancel() }
        return ending
    }

    mutating func allow(_ number: InodeNumber) {
        if let index = leftAlone.firstIndex(of: number) { leftAlone.remove(at: index) }
    }

    private func isBelow(_ number: InodeNumber, _ directory: InodeNumber) -> Bool {
        (try? replica.database.isBelow(number, directory)) ?? true
    }
}
