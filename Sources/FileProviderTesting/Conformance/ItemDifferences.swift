import FileProvider

extension FileProviderItem {
    /// The fields in which the item differs from another, for messages.
    func differences(from other: FileProviderItem) -> String {
        let fields = zip(Self.fields(of: self), Self.fields(of: other)).filter { $0.value != $1.value }
        if fields.isEmpty { return "no field that has a text" }
        return fields.map { "\($0.name) \($0.value.prefix(60)) instead of \($1.value.prefix(60))" }
            .joined(separator: ", ")
    }

    private static func fields(of value: Any) -> [(name: String, value: String)] {
        Mirror(reflecting: value).children.flatMap { field -> [(name: String, value: String)] in
            field.value is ItemVersion ? fields(of: field.value) : [(field.label ?? "", text(of: field.value))]
        }
    }

    private static func text(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional { return mirror.children.first.map { text(of: $0.value) } ?? "nil" }
        if let bytes = value as? [UInt8] { return "'\(String(decoding: bytes, as: UTF8.self))'" }
        if let date = value as? FileTimestamp { return "'\(date.nanosecondsSince1970) ns'" }
        if let attributes = value as? [String: [UInt8]] {
            let pairs = attributes.sorted { $0.key < $1.key }.map { "\($0.key)=\(text(of: $0.value))" }
            return "{\(pairs.joined(separator: " "))}"
        }
        return "'\(value)'"
    }

    /// What is wrong when a renamed item has another identifier than before.
    func identityLoss(since before: FileProviderItem) -> String {
        let what = "a \(kind) has another identifier after its rename"
        guard kind == .file, itemVersion.contentVersion != before.itemVersion.contentVersion else { return what }
        return what + ": its content version (a program's 'tag') has changed too, and must not with a name; "
            + "a remote without identifiers is searched for it"
    }
}

/// Throws unless two items are equal.
func expect(_ item: FileProviderItem, equals other: FileProviderItem, _ what: @autoclosure () -> String) throws {
    try expect(item == other, "\(what()): \(item.differences(from: other))")
}
