import CSyscalls
import Glibc

/// Answers the kernel with EIO while workers crash in a loop. See Docs/decisions/0011-crash-loops.md.
struct RequestRefusal {
    /// The kernel refuses to read with less than a header and the largest WRITE.
    private var buffer = [UInt8](repeating: 0, count: 2 << 20)
    /// Other events are handled in between.
    private static let batch = 256
    /// The devices whose requests wait for the next worker, as that of a mount that ends meanwhile.
    private var givenUp: Set<Int32> = []

    func answers(_ device: Int32) -> Bool { !givenUp.contains(device) }

    mutating func giveUp(_ device: Int32) { givenUp.insert(device) }

    /// Answers the requests that wait on a device.
    ///
    /// - Parameter missed: the file to which the requests are added that the next worker has to count.
    /// - Returns: false when the device cannot be read.
    mutating func answer(_ device: Int32, missed: Int32) -> Bool {
        let flags = fcntl(device, F_GETFL)
        // The next worker shares the flags, and its reads block.
        guard flags >= 0, fcntl(device, F_SETFL, flags | O_NONBLOCK) == 0 else { return false }
        defer { _ = fcntl(device, F_SETFL, flags & ~O_NONBLOCK) }
        for _ in 0..<Self.batch {
            let length = read(device, &buffer, buffer.count)
            // ENOENT: the request was interrupted before it was read.
            if length < 0, errno == ENOENT || errno == EINTR { continue }
            if length < 0, errno == EAGAIN { return true }
            guard length > 0, let request = KernelRequest(buffer[..<length]) else { return false }
            let records = request.missed.flatMap { $0.flatMap { [UInt8](word: $0) } }
            if !records.isEmpty, write(missed, records, records.count) != records.count {
                Log.write("a closed file or forgotten inode cannot be noted, and stays in use until the unmount")
            }
            // An error means that the caller was interrupted, or the mount has ended.
            if let response = request.response { _ = write(device, response, response.count) }
        }
        return true
    }

    /// A file for what the next worker has to count.
    static func makeMissed() -> Int32? {
        let file = yonder_memfd_create("yonder-missed")
        guard file >= 0 else { return nil }
        _ = fcntl(file, F_SETFL, O_APPEND)
        return file
    }
}
