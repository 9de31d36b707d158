/// A key, or what many begin with, as tables hold it: by its bytes. Two Unicode forms of one text are one `String`, and two
/// keys.
struct KeyBytes: Hashable, Sendable {
    let bytes: [UInt8]

    init(_ key: String) {
        bytes = Array(key.utf8)
    }

    func starts(with prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }
}

extension String {
    /// What follows a beginning. Where that ends with a slash, what follows may begin with a sign that makes one character
    /// of both.
    func dropping(_ beginning: String) -> String {
        String(decoding: utf8.dropFirst(beginning.utf8.count), as: UTF8.self)
    }
}
