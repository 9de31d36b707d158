/// Parses an XML document as it arrives, and returns each child of its root as soon as it is complete, so that a response with a
/// hundred thousand of them is never in memory as a whole.
package struct XMLReader {
    private struct Open {
        var element: XMLElement
        var text: [UInt8] = []
        /// The name with its prefix.
        var tag: [UInt8]
        /// The namespaces that were declared here, by prefix.
        var namespaces: [String: String] = [:]
    }

    private let limits: XMLLimits
    private var tokenizer: XMLTokenizer
    private var open: [Open] = []
    private var root: XMLElement?
    private var elementBytes = 0
    /// A cache of split names: a listing has few names, many thousand times.
    private var parts: [[UInt8]: (prefix: String, local: String)] = [:]
    private static let mostParts = 256
    /// The memory of an element or an attribute besides its text, so that thousands of empty ones count.
    private static let ownBytes = 64

    package init(limits: XMLLimits = XMLLimits()) {
        self.limits = limits
        tokenizer = XMLTokenizer(limits: limits)
    }

    /// Parses further bytes.
    ///
    /// - Returns: the children of the root that were completed, in order.
    /// - Throws: `malformedResponse` for invalid XML, or more than the limits allow.
    package mutating func feed(_ bytes: some Collection<UInt8>) throws -> [XMLElement] {
        var found: [XMLElement] = []
        var tokens: [XMLTokenizer.Token] = []
        try tokenizer.feed(bytes) { tokens.append($0) }
        for token in tokens { try take(token, &found) }
        return found
    }

    /// Ends the document.
    ///
    /// - Returns: the root without the returned children.
    /// - Throws: `malformedResponse` when the document is incomplete.
    package mutating func finish() throws -> XMLElement {
        // The tokenizer may hold back a few bytes of white space.
        _ = try feed(CollectionOfOne(UInt8(ascii: "\n")))
        guard let root, open.isEmpty, !tokenizer.hasRest else { throw XMLTokenizer.wrong("it ends in the middle") }
        return root
    }

    /// Parses a small document.
    package static func document(_ bytes: [UInt8], limits: XMLLimits = XMLLimits()) throws -> XMLElement {
        var reader = XMLReader(limits: limits)
        let children = try reader.feed(bytes)
        var root = try reader.finish()
        root.children = children
        return root
    }

    private mutating func take(_ token: XMLTokenizer.Token, _ found: inout [XMLElement]) throws {
        switch token {
        case .text(let bytes):
            guard !open.isEmpty else {
                guard bytes.allSatisfy(\.isXMLSpace) else { throw XMLTokenizer.wrong("text stands outside of it") }
                return
            }
            try count(bytes.count)
            open[open.count - 1].text += bytes
            guard open[open.count - 1].text.count <= limits.piece else {
                throw XMLTokenizer.wrong("a text is too long")
            }
        case .start(let name, let attributes, let isEmpty):
            try begin(name, attributes)
            if isEmpty { try end(&found) }
        case .end(let name):
            guard open.last?.tag == name else { throw XMLTokenizer.wrong("its tags do not match") }
            try end(&found)
        }
    }

    private mutating func begin(
        _ tag: [UInt8], _ attributes: [(name: [UInt8], value: [UInt8])]
    ) throws {
        guard root == nil else { throw XMLTokenizer.wrong("it has two roots") }
        guard open.count < limits.depth else { throw XMLTokenizer.wrong("it is deeper than \(limits.depth)") }
        if open.count == 1 { elementBytes = 0 }
        let attributeBytes = attributes.reduce(0) { $0 + Self.ownBytes + $1.name.count + $1.value.count }
        try count(Self.ownBytes + tag.count + attributeBytes)
        var namespaces: [String: String] = [:]
        var others: [(name: [UInt8], value: String)] = []
        for (name, value) in attributes {
            let text = try Self.string(value)
            if name.elementsEqual("xmlns".utf8) {
                namespaces[""] = text
            } else if name.starts(with: "xmlns:".utf8) {
                namespaces[try Self.string(Array(name.dropFirst(6)))] = text
            } else {
                others.append((name, text))
                continue
            }
            // Names are compared with their namespaces, again and again.
            guard value.count <= limits.name else { throw XMLTokenizer.wrong("a namespace is too long") }
        }
        open.append(Open(element: XMLElement(name: XMLName("", "")), tag: tag, namespaces: namespaces))
        var element = XMLElement(name: try resolve(tag, isAttribute: false))
        for (name, value) in others { element.attributes[try resolve(name, isAttribute: true)] = value }
        open[open.count - 1].element = element
    }

    private mutating func end(_ found: inout [XMLElement]) throws {
        guard var last = open.popLast() else { throw XMLTokenizer.wrong("its tags do not match") }
        last.element.text = try Self.string(last.text)
        switch open.count {
        case 0: root = last.element
        case 1: found.append(last.element)
        default: open[open.count - 1].element.children.append(last.element)
        }
    }

    private mutating func count(_ bytes: Int) throws {
        elementBytes += bytes
        guard open.count < 2 || elementBytes <= limits.element else {
            throw XMLTokenizer.wrong("an element is too long")
        }
    }

    private mutating func resolve(_ tag: [UInt8], isAttribute: Bool) throws -> XMLName {
        let (prefix, local) = try split(tag)
        if prefix.isEmpty, isAttribute { return XMLName("", local) }
        if prefix == "xml" { return XMLName("http://www.w3.org/XML/1998/namespace", local) }
        for element in open.reversed() where !element.namespaces.isEmpty {
            if let namespace = element.namespaces[prefix] { return XMLName(namespace, local) }
        }
        guard prefix.isEmpty else { throw XMLTokenizer.wrong("the prefix '\(prefix.prefix(40))' is not declared") }
        return XMLName("", local)
    }

    private mutating func split(_ tag: [UInt8]) throws -> (prefix: String, local: String) {
        if let known = parts[tag] { return known }
        let pieces = tag.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard pieces.count <= 2, pieces.allSatisfy({ !$0.isEmpty }) else {
            throw XMLTokenizer.wrong("a name is no name")
        }
        let local = try Self.string(Array(pieces[pieces.count - 1]))
        let found = (pieces.count == 2 ? try Self.string(Array(pieces[0])) : "", local)
        if parts.count < Self.mostParts { parts[tag] = found }
        return found
    }

    private static func string(_ bytes: [UInt8]) throws -> String {
        if bytes.isEmpty { return "" }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw XMLTokenizer.wrong("it is not in UTF-8")
        }
        return text
    }
}
