import Glibc
import SystemPackage

/// Reads the names in a directory one after the other, as bytes and in no order, without `.` and `..`. (readdir)
///
/// A name that is there from the beginning to the end is given exactly once, whatever is made, removed or renamed
/// meanwhile. Memory does not grow with the directory.
// Unchecked: the stream has no lock of its own. Its holder uses it from one thread at a time.
package final class DirectoryStream: @unchecked Sendable {
    private let stream: OpaquePointer

    /// - Parameter directory: remains open; the caller closes it.
    package init(of directory: FileDescriptor) throws(Errno) {
        let descriptor = try FileDescriptor.openAt(directory.rawValue, ".", O_RDONLY | O_DIRECTORY)
        guard let stream = fdopendir(descriptor.rawValue) else {
            let error = Errno.current
            try? descriptor.close()
            throw error
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The next name; nil at the end.
    package func next() throws(Errno) -> [UInt8]? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw Errno.current }
                return nil
            }
            // On some file systems the name exceeds the declared array, so its length is that of the C string.
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                let start = UnsafeRawPointer(pointer)
                return Array(
                    UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
            }
            if name != [0x2E], name != [0x2E, 0x2E] { return name }
        }
    }
}
