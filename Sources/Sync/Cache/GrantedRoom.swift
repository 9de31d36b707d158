import Synchronization

/// Room on the disk that fetches were granted and have not filled yet.
final class GrantedRoom: Sendable {
    private let total = Mutex<Int64>(0)

    /// In bytes.
    var bytes: Int64 { total.withLock { $0 } }

    /// Grants room to a fetch. The caller has verified that it is there.
    func grant(_ bytes: Int64) -> Share {
        total.withLock { $0 += bytes }
        return Share(bytes, of: self)
    }

    /// The room of one fetch.
    final class Share: Sendable {
        private let left: Mutex<Int64>
        private let room: GrantedRoom

        fileprivate init(_ bytes: Int64, of room: GrantedRoom) {
            left = Mutex(bytes)
            self.room = room
        }

        deinit { fill(.max) }

        /// Bytes have arrived, and take room on the disk now.
        func fill(_ count: Int64) {
            let filled = left.withLock { left in
                let filled = min(count, left)
                left -= filled
                return filled
            }
            room.total.withLock { $0 -= filled }
        }

        /// The fetch has ended.
        func end() { fill(.max) }
    }
}
