/// An error that may say that there is no such item.
package protocol MissingItemError: Error {
    var isMissing: Bool { get }
}

extension FileProviderError: MissingItemError {
    package var isMissing: Bool { code == .noSuchItem }
}

/// Runs a body that asks for an item.
///
/// - Returns: nil when there is no such item.
package func ifExists<Value>(_ body: () async throws -> Value?) async throws -> Value? {
    do {
        return try await body()
    } catch let error as any MissingItemError where error.isMissing {
        return nil
    }
}
