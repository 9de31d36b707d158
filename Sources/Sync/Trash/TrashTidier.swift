import FileProvider
import Replica

/// Removes the `.trashinfo` files of items that were moved out of the trash by hand.
final class TrashTidier: SyncPart {
    let context: SyncContext
    private let signal = WakeSignal()
    /// Programs write the `.trashinfo` file before they move the item, so younger ones stay.
    private static let age = Duration.seconds(60)

    init(_ context: SyncContext) { self.context = context }

    func start() {
        signal.run {
            self.tidy()
            return Self.age
        }
        wake()
    }

    /// Something may have left the trash. Returns at once; from any thread.
    func wake() { signal.wake() }

    func stop() { signal.stop() }

    private func tidy() {
        let moment = FileTimestamp.now.advanced(by: .zero - Self.age)
        guard
            let (_, effects) = try? replica.change(
                open: open, { try $0.trash.removeOrphanedInformation(before: moment) })
        else { return }
        commits.publish(effects)
    }
}
