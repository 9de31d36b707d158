/// Runs a body that asks for an item.
///
/// - Returns: nil when there is no such item.
package func ifExists<Value>(_ body: () async throws -> Value?) async throws -> Value? {
    do {
        return try await body()
    } catch let error as FileProviderError where error.code == .noSuchItem {
        return nil
    }
}
