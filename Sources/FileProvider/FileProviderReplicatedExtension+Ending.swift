extension FileProviderReplicatedExtension {
    /// Ends the provider, and waits for that only for a time. Then what it does is cancelled, on which a provider ends the programs that it
    /// has started at once. One that ignores that as well goes on by itself.
    ///
    /// - Returns: whether it has ended.
    @discardableResult
    package func invalidate(within patience: Duration) async -> Bool {
        let ending = Task<Void, any Error> { await invalidate() }
        if await ending.result(within: patience) != nil { return true }
        ending.cancel()
        return await ending.result(within: .seconds(1)) != nil
    }
}
