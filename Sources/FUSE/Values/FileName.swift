import FileNames
import Glibc

/// A file name as the bytes that Linux uses. Two names are equal when their bytes are equal.
package struct FileName: Hashable, Sendable {
    package var bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    /// - Parameter text: encoded by ``FileNameText``.
    package init(_ text: String) { bytes = FileNameText.bytes(of: text) }

    init(_ string: UnsafePointer<CChar>?) {
        guard let string else {
            bytes = []
            return
        }
        bytes = [UInt8](UnsafeRawBufferPointer(start: string, count: strlen(string)))
    }

    /// The name as text, also for bytes that are not UTF-8 (``FileNameText``).
    package var text: String { FileNameText.text(of: bytes) }
}

extension FileName: CustomStringConvertible {
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension FileName: ExpressibleByStringLiteral {
    package init(stringLiteral value: String) { self.init(value) }
}
