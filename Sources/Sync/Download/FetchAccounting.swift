/// Keeps account of what is fetched for which process.
package protocol FetchAccounting: Sendable {
    /// Bytes have come for a process. Called for each piece, from any thread; returns at once.
    func charge(_ bytes: Int64, to process: Int32)
    /// Whether more may be fetched for a process, also ahead of it.
    func admits(_ process: Int32) -> Bool
}
