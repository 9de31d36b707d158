import FileProvider

/// The error that a body throws, another one than a provider's as `posix`; nil if it throws none.
package func failure(of body: () async throws -> Void) async -> FileProviderError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? FileProviderError ?? FileProviderError(.posix, "another error: \(error)")
    }
}

/// Its code.
package func failureCode(of body: () async throws -> Void) async -> FileProviderError.Code? {
    await failure(of: body)?.code
}
