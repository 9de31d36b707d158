/// The headers of a request or a response, in order. Names are case-insensitive.
package struct HTTPFields: Sendable, Hashable, ExpressibleByDictionaryLiteral, Sequence {
    private var fields: [Field] = []

    package struct Field: Sendable, Hashable {
        package var name: String
        package var value: String
    }

    package init() {}

    package init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of a header. Setting it replaces all values.
    package subscript(name: String) -> String? {
        get { fields.first { $0.name.isSameField(as: name) }?.value }
        set {
            fields.removeAll { $0.name.isSameField(as: name) }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    package mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    package func values(of name: String) -> [String] {
        fields.filter { $0.name.isSameField(as: name) }.map(\.value)
    }

    package var isEmpty: Bool { fields.isEmpty }

    package func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }
}

extension StringProtocol {
    func isSameField(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0 == $1 || ($0.lowercasedASCII == $1.lowercasedASCII) }
    }

    func trimmingBlanks() -> String {
        var bytes = Array(utf8)[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var lowercasedASCII: UInt8 { (0x41...0x5A).contains(self) ? self + 0x20 : self }
}
