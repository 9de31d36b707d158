import Synchronization

/// Space on the disk that fetches have reserved and not filled yet.
final class SpaceReservations: Sendable {
    private let total = Mutex<Int64>(0)

    /// In bytes.
    var bytes: Int64 { total.withLock { $0 } }

    /// Reserves space for a fetch. The caller has verified that it is free.
    func reserve(_ bytes: Int64) -> Reservation {
        total.withLock { $0 += bytes }
        return Reservation(bytes, in: self)
    }

    /// The space of one fetch.
    final class Reservation: Sendable {
        private let left: Mutex<Int64>
        private let reservations: SpaceReservations

        fileprivate init(_ bytes: Int64, in reservations: SpaceReservations) {
            left = Mutex(bytes)
            self.reservations = reservations
        }

        deinit { release() }

        /// Bytes have arrived, and take space on the disk now.
        func fill(_ count: Int64) {
            let filled = left.withLock { left in
                let filled = min(count, left)
                left -= filled
                return filled
            }
            reservations.total.withLock { $0 -= filled }
        }

        /// The fetch has ended.
        func release() { fill(.max) }
    }
}
