/// What is wrong with a message of a program, in the words of JSON.
extension DecodingError {
    /// The field and what the protocol has there, such as "'result.version' must be a number".
    var words: String {
        switch self {
        case .keyNotFound(let key, let context): "'\(Self.path(context.codingPath + [key]))' is missing"
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            "'\(Self.path(context.codingPath))' must be \(Self.name(of: type))"
        case .dataCorrupted(let context):
            // Foundation says the same of a number that does not fit.
            context.codingPath.isEmpty
                ? "it is not JSON, or has a number that is out of range or no integer"
                : "'\(Self.path(context.codingPath))' has an invalid value"
        @unknown default: "\(self)"
        }
    }

    /// A path such as `result.items[2].kind`.
    private static func path(_ keys: [any CodingKey]) -> String {
        let path = keys.reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += (path.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return path.isEmpty ? "the message" : path
    }

    /// The JSON type that is decoded as a type.
    static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is any Numeric.Type: "a number"
        case is [Any].Type: "an array"
        default: "an object"
        }
    }
}
