import FileProvider

/// The provider error that a body throws; nil if it throws none.
func failure(of body: () async throws -> Void) async -> FileProviderError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? FileProviderError
    }
}

/// The code of the provider error that a body throws; nil if it throws none.
func failureCode(of body: () async throws -> Void) async -> FileProviderError.Code? {
    await failure(of: body)?.code
}
