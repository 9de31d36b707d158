import FileProvider

/// A violation of the provider contract.
public struct ConformanceFailure: Error, CustomStringConvertible {
    /// The violation in words.
    public var description: String

    /// A violation in words.
    public init(_ description: String) {
        self.description = description
    }
}

func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    if !condition { throw ConformanceFailure(otherwise()) }
}

/// Throws unless `body` fails with this code.
func expect(
    _ code: FileProviderError.Code, from what: String, _ body: () async throws -> Void
) async throws {
    do {
        try await body()
    } catch let error as FileProviderError {
        return try expect(error.code == code, "\(what): \(error) instead of \(code)")
    } catch {
        throw ConformanceFailure("\(what): \(error) instead of \(code)")
    }
    throw ConformanceFailure("\(what): succeeds instead of \(code)")
}
