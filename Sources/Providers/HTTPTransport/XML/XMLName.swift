/// An expanded XML name.
package struct XMLName: Hashable, Sendable, CustomStringConvertible {
    /// Empty for none.
    package var namespace: String
    package var local: String

    package init(_ namespace: String, _ local: String) {
        self.namespace = namespace
        self.local = local
    }

    package var description: String { namespace.isEmpty ? local : "{\(namespace)}\(local)" }

    package static func == (one: XMLName, other: XMLName) -> Bool {
        one.isCalled(other.local, in: other.namespace)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in local.utf8 { hasher.combine(byte) }
    }
}

package struct XMLElement: Sendable, Hashable {
    package var name: XMLName
    /// Without namespace declarations.
    package var attributes: [XMLName: String] = [:]
    package var children: [XMLElement] = []
    /// The element's own text, without that of its children.
    package var text: String = ""

    package func child(_ namespace: String, _ local: String) -> XMLElement? {
        children.first { $0.name.isCalled(local, in: namespace) }
    }

    package func children(_ namespace: String, _ local: String) -> [XMLElement] {
        children.filter { $0.name.isCalled(local, in: namespace) }
    }

    /// The first child with a local name, in any namespace.
    package func child(_ local: String) -> XMLElement? {
        children.first { $0.name.local.utf8.elementsEqual(local.utf8) }
    }

    /// The text without the white space around it.
    package var trimmedText: String {
        guard text.utf8.first?.isXMLSpace == true || text.utf8.last?.isXMLSpace == true else { return text }
        var bytes = text.utf8[...]
        while let first = bytes.first, first.isXMLSpace { bytes = bytes.dropFirst() }
        while let last = bytes.last, last.isXMLSpace { bytes = bytes.dropLast() }
        return String(decoding: Array(bytes), as: UTF8.self)
    }
}

extension XMLName {
    package func isCalled(_ local: String, in namespace: String) -> Bool {
        self.local.utf8.count == local.utf8.count && self.local.utf8.elementsEqual(local.utf8)
            && self.namespace.utf8.count == namespace.utf8.count && self.namespace.utf8.elementsEqual(namespace.utf8)
    }
}

extension String {
    /// The text as character data. Unicode scalars are compared, because "&" and a combining mark after it are one `Character`.
    package var escapedForXML: String {
        unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}

extension UInt8 {
    var isXMLSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}

/// Limits for XML from a server.
package struct XMLLimits: Sendable, Hashable {
    package var depth = 64
    /// The attributes of one tag, including namespace declarations.
    package var attributes = 256
    /// The bytes of a name with its prefix, and of a namespace.
    package var name = 1024
    /// The bytes of one piece: a tag, an element's text.
    package var piece = 1 << 20
    /// The bytes of one child of the root with its content, and 64 for each element and each attribute.
    package var element = 8 << 20
    package var total: Int64 = 4 << 30

    package init() {}
}
