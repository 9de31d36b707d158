/// An element of a list, decoded by itself: one that cannot be used leaves the others usable.
enum ListElement<Value: Decodable & Sendable>: Decodable, Sendable {
    case usable(Value)
    /// The texts among its fields, and what it has that the protocol does not allow.
    case unusable([String: String], String)

    /// A field of any type.
    private struct Field: Decodable {
        var text: String?

        init(from decoder: any Decoder) { text = try? decoder.singleValueContainer().decode(String.self) }
    }

    init(from decoder: any Decoder) {
        do {
            self = .usable(try Value(from: decoder))
        } catch {
            let fields = (try? [String: Field](from: decoder)) ?? [:]
            self = .unusable(fields.compactMapValues(\.text), Self.mistake(in: error))
        }
    }

    private static func mistake(in error: any Error) -> String {
        // Foundation has an error of its own, without the field, for a number out of range and for a text that is none.
        guard let error = error as? DecodingError else { return "a value that cannot be represented" }
        switch error {
        case .keyNotFound(let key, _): return "no '\(key.stringValue)'"
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            guard let key = context.codingPath.last, key.intValue == nil else { break }
            return "an invalid '\(key.stringValue)', which must be \(DecodingError.name(of: type))"
        case .dataCorrupted(let context):
            guard let key = context.codingPath.last, key.intValue == nil else { break }
            return "an invalid '\(key.stringValue)'"
        default: break
        }
        return "other fields than the protocol has"
    }
}
