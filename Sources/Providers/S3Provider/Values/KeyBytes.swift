/// A key, or a prefix, that is compared by its bytes. Two Unicode forms of one text are equal as `String`s, and two keys.
struct KeyBytes: Hashable, Sendable {
    let bytes: [UInt8]

    init(_ key: String) {
        bytes = Array(key.utf8)
    }

    func starts(with prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }
}

extension String {
    /// The text after a prefix. It is cut by bytes, because the prefix's last character and a combining character after it are
    /// one `Character`.
    func dropping(_ beginning: String) -> String {
        String(decoding: utf8.dropFirst(beginning.utf8.count), as: UTF8.self)
    }
}
