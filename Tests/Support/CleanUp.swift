/// Runs a body, and then what cleans up after it, also when the body throws: `defer` cannot wait.
package func withCleanUp(_ cleanUp: () async throws -> Void, _ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch {
        try? await cleanUp()
        throw error
    }
    try await cleanUp()
}
