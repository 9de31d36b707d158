import Syscalls
import SystemPackage

/// The RELEASE and FORGET requests that the keeper has read while no daemon ran (`KernelRequest.missed` of the keeper writes them).
package struct MissedRequests: Sendable {
    enum Record: Hashable, Sendable {
        case forget(node: UInt64, lookups: UInt64)
        case release(node: UInt64, flags: Int32, request: UInt64)
    }

    private let file: FileDescriptor
    private static let recordLength = 32

    /// - Parameter file: the caller keeps its ownership.
    package init(in file: FileDescriptor) { self.file = file }

    /// Passes each record on and removes it, in batches from the end of the file.
    ///
    /// A process that is killed meanwhile counts a RELEASE once, because of its number: a batch is shorter than the ring of numbers
    /// in a `HandleTable`. A FORGET has none: it is removed before it is counted, because a count that is too low would remove an
    /// inode that the kernel uses.
    func takeAll(batchSize: Int = 512, _ body: (Record) -> Void) throws(Errno) {
        let bytes = try FilePath("/proc/self/fd/\(file.rawValue)").contents()
        var end = bytes.count / Self.recordLength
        repeat {
            let start = max(0, end - batchSize)
            let records = Self.records(bytes[start * Self.recordLength..<end * Self.recordLength])
            for case .release(let node, let flags, let request) in records {
                body(.release(node: node, flags: flags, request: request))
            }
            do {
                try file.resize(to: Int64(start * Self.recordLength))
            } catch {
                throw error as? Errno ?? .ioError
            }
            for case .forget(let node, let lookups) in records { body(.forget(node: node, lookups: lookups)) }
            end = start
        } while end > 0
    }

    private static func records(_ bytes: ArraySlice<UInt8>) -> [Record] {
        let words = stride(from: bytes.startIndex, to: bytes.endIndex, by: 8).map { start in
            (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[start + $1]) << (8 * $1) }
        }
        return stride(from: 0, to: words.count, by: recordLength / 8).compactMap { start in
            switch words[start] {
            case 2: .forget(node: words[start + 1], lookups: words[start + 2])
            case 18:
                .release(
                    node: words[start + 1], flags: Int32(truncatingIfNeeded: words[start + 2]),
                    request: words[start + 3])
            default: nil
            }
        }
    }
}
