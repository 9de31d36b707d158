import FileProvider

/// Tokenizes XML as it arrives, in one pass. It is strict and supports only UTF-8, namespaces, CDATA and the five predefined
/// entities. A document type is refused, and with it every other entity, so that nothing expands and nothing is fetched.
struct XMLTokenizer {
    enum Token {
        case start(name: [UInt8], attributes: [(name: [UInt8], value: [UInt8])], isEmpty: Bool)
        case end(name: [UInt8])
        case text([UInt8])
    }

    private let limits: XMLLimits
    private var pending: [UInt8] = []
    /// The index in `pending` of the next token.
    private var position = 0
    /// The index up to which the end of that token was searched for, and the open quote there. So the bytes of a token that
    /// arrives in many small pieces are scanned once.
    private var scanned = 0
    private var quote: UInt8 = 0
    private var seen: Int64 = 0
    private var isAtStart = true

    init(limits: XMLLimits) {
        self.limits = limits
    }

    /// Whether there is an incomplete token other than white space.
    var hasRest: Bool { !pending[position...].allSatisfy(\.isXMLSpace) }

    mutating func feed(_ bytes: some Collection<UInt8>, _ take: (Token) throws -> Void) throws {
        seen += Int64(bytes.count)
        guard seen <= limits.total else { throw Self.wrong("it is larger than \(limits.total) bytes") }
        // Tokenized bytes are removed when they are at least half: each byte is moved once.
        if position > 0, position >= pending.count / 2 {
            pending.removeSubrange(..<position)
            scanned = max(0, scanned - position)
            position = 0
        }
        pending.append(contentsOf: bytes)
        while let token = try next() {
            (scanned, quote) = (0, 0)
            if let token = token.value { try take(token) }
        }
        guard pending.count - position <= limits.piece else { throw Self.wrong("a piece of it is too long") }
    }

    /// The next token, or a part without meaning such as a comment; nil when more bytes are needed.
    private mutating func next() throws -> (value: Token?, Void)? {
        if isAtStart {
            guard pending.count - position >= 4 else { return nil }
            guard pending[0] != 0xFE, pending[0] != 0xFF, pending[0] != 0, pending[1] != 0 else {
                throw Self.wrong("it is not in UTF-8")
            }
            if pending.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
            isAtStart = false
        }
        guard position < pending.count else { return nil }
        guard pending[position] == UInt8(ascii: "<") else { return try text() }
        guard position + 1 < pending.count else { return nil }
        switch pending[position + 1] {
        case UInt8(ascii: "?"): return try instruction()
        case UInt8(ascii: "!"): return try declaration()
        case UInt8(ascii: "/"): return try endTag()
        default: return try startTag()
        }
    }

    /// The index of the first occurrence of a sequence after a position.
    private mutating func find(_ wanted: StaticString, from start: Int) -> Int? {
        let bytes = wanted.description.utf8
        guard let first = bytes.first else { return nil }
        var index = max(start, scanned)
        defer { scanned = index }
        while index + bytes.count <= pending.count {
            if pending[index] == first, pending[index..<index + bytes.count].elementsEqual(bytes) { return index }
            index += 1
        }
        return nil
    }

    private func begins(_ wanted: StaticString) -> Bool? {
        let bytes = wanted.description.utf8
        let there = pending[position...].prefix(bytes.count)
        guard there.elementsEqual(bytes.prefix(there.count)) else { return false }
        return there.count == bytes.count ? true : nil
    }

    private mutating func text() throws -> (value: Token?, Void)? {
        var end = position
        while end < pending.count, pending[end] != UInt8(ascii: "<") { end += 1 }
        if end == pending.count {
            // A reference, a line end or a character that is cut here waits for the rest.
            guard end - position > 1024 else { return nil }
            end -= 32
            // No character has more than three of them, and text that is not UTF-8 is not searched for a place again and again.
            for _ in 0..<3 where pending[end] & 0xC0 == 0x80 { end -= 1 }
            if let open = pending[position..<end].suffix(32).lastIndex(of: UInt8(ascii: "&")),
                !pending[open..<end].contains(UInt8(ascii: ";"))
            {
                end = open
            }
            if end > position, pending[end - 1] == 0x0D { end -= 1 }
            guard end > position else { return nil }
        }
        defer { position = end }
        return (.text(try resolved(pending[position..<end])), ())
    }

    private mutating func instruction() throws -> (value: Token?, Void)? {
        guard let end = find("?>", from: position + 2) else { return nil }
        let content = pending[position + 2..<end]
        if content.starts(with: "xml ".utf8) {
            let words = String(decoding: content, as: UTF8.self).lowercased()
            if let named = words.firstRange(of: "encoding=") {
                let encoding = words[named.upperBound...].dropFirst().prefix { $0 != "\"" && $0 != "'" }
                guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(encoding) else {
                    throw Self.wrong("it is in \(encoding.prefix(20)), not in UTF-8")
                }
            }
        }
        position = end + 2
        return (nil, ())
    }

    private mutating func declaration() throws -> (value: Token?, Void)? {
        guard let isComment = begins("<!--") else { return nil }
        if isComment {
            guard let end = find("-->", from: position + 4) else { return nil }
            position = end + 3
            return (nil, ())
        }
        guard let isData = begins("<![CDATA[") else { return nil }
        guard isData else { throw Self.wrong("it has a document type or an entity of its own, which is refused") }
        guard let end = find("]]>", from: position + 9) else { return nil }
        let data = Array(pending[position + 9..<end])
        position = end + 3
        return (.text(Self.withPlainLineEnds(data)), ())
    }

    private mutating func endTag() throws -> (value: Token?, Void)? {
        guard let end = find(">", from: position) else { return nil }
        var name = pending[position + 2..<end]
        while let last = name.last, last.isXMLSpace { name = name.dropLast() }
        position = end + 1
        return (.end(name: try checked(name)), ())
    }

    private mutating func startTag() throws -> (value: Token?, Void)? {
        guard let end = endOfTag() else { return nil }
        var inside = pending[position + 1..<end]
        let isEmpty = inside.last == UInt8(ascii: "/")
        if isEmpty { inside = inside.dropLast() }
        let name = inside.prefix { !$0.isXMLSpace }
        inside = inside[name.endIndex...]
        var attributes: [(name: [UInt8], value: [UInt8])] = []
        while true {
            let rest = inside.drop { $0.isXMLSpace }
            guard !rest.isEmpty else { break }
            guard rest.startIndex > inside.startIndex else { throw Self.wrong("two attributes are not set apart") }
            let key = rest.prefix { !$0.isXMLSpace && $0 != UInt8(ascii: "=") }
            var after = rest[key.endIndex...].drop { $0.isXMLSpace }
            guard after.first == UInt8(ascii: "=") else { throw Self.wrong("an attribute has no value") }
            after = after.dropFirst().drop { $0.isXMLSpace }
            guard let quote = after.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
                throw Self.wrong("an attribute's value is not in quotes")
            }
            let value = after.dropFirst().prefix { $0 != quote }
            guard value.endIndex < after.endIndex, !value.contains(UInt8(ascii: "<")) else {
                throw Self.wrong("an attribute's value has no end")
            }
            let checkedKey = try checked(key)
            guard attributes.count < limits.attributes else {
                throw Self.wrong("a tag has more than \(limits.attributes) attributes")
            }
            guard !attributes.contains(where: { $0.name == checkedKey }) else {
                throw Self.wrong("an attribute comes twice")
            }
            attributes.append((checkedKey, try resolved(value)))
            inside = after[(value.endIndex + 1)...]
        }
        position = end + 1
        return (.start(name: try checked(name), attributes: attributes, isEmpty: isEmpty), ())
    }

    /// The index of the tag's end: a `>` in quotes does not end it.
    private mutating func endOfTag() -> Int? {
        var index = max(position + 1, scanned)
        defer { scanned = index }
        while index < pending.count {
            let byte = pending[index]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == UInt8(ascii: ">") {
                return index
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            }
            index += 1
        }
        return nil
    }

    private func checked(_ name: ArraySlice<UInt8>) throws -> [UInt8] {
        guard name.count <= limits.name else { throw Self.wrong("a name is too long") }
        let isName = name.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: true
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"): true
            default: false
            }
        }
        guard isName, let first = name.first, !(0x30...0x39).contains(first), first != UInt8(ascii: "-"),
            first != UInt8(ascii: ".")
        else { throw Self.wrong("it is not well-formed") }
        return Array(name)
    }

    private func resolved(_ raw: ArraySlice<UInt8>) throws -> [UInt8] {
        guard raw.contains(UInt8(ascii: "&")) else { return Self.withPlainLineEnds(Array(raw)) }
        var out: [UInt8] = []
        var rest = raw
        while let open = rest.firstIndex(of: UInt8(ascii: "&")) {
            out += Self.withPlainLineEnds(Array(rest[..<open]))
            guard let end = rest[open...].prefix(16).firstIndex(of: UInt8(ascii: ";")) else {
                throw Self.wrong("it has an & that begins nothing")
            }
            try Self.resolve(rest[(open + 1)..<end], into: &out)
            rest = rest[(end + 1)...]
        }
        return out + Self.withPlainLineEnds(Array(rest))
    }

    private static func resolve(_ reference: ArraySlice<UInt8>, into out: inout [UInt8]) throws {
        let name = String(decoding: reference, as: UTF8.self)
        switch name {
        case "lt": out.append(UInt8(ascii: "<"))
        case "gt": out.append(UInt8(ascii: ">"))
        case "amp": out.append(UInt8(ascii: "&"))
        case "quot": out.append(UInt8(ascii: "\""))
        case "apos": out.append(UInt8(ascii: "'"))
        default:
            let number =
                name.hasPrefix("#x")
                ? UInt32(name.dropFirst(2), radix: 16)
                : name.hasPrefix("#") ? UInt32(name.dropFirst()) : nil
            // Control characters are not allowed in XML 1.0, but servers send them in names.
            guard let number, number != 0, let scalar = Unicode.Scalar(number) else {
                throw wrong("it has a reference to something that is not in it")
            }
            out += Array(String(Character(scalar)).utf8)
        }
    }

    private static func withPlainLineEnds(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(0x0D) else { return bytes }
        var out: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if byte != 0x0D {
                out.append(byte)
            } else if index + 1 == bytes.count || bytes[index + 1] != 0x0A {
                out.append(0x0A)
            }
        }
        return out
    }

    static func wrong(_ what: String) -> FileProviderError {
        FileProviderError(.malformedResponse, "the answer's XML is refused: \(what)")
    }
}
