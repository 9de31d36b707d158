/// Runs a body, then closes what it used, also where it has thrown: `defer` cannot wait.
package func closing<Value>(
    isolation: isolated (any Actor)? = #isolation, _ close: () async -> Void, after body: () async throws -> Value
) async throws -> Value {
    do {
        let value = try await body()
        await close()
        return value
    } catch {
        await close()
        throw error
    }
}
