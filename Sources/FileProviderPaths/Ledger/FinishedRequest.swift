/// The latest request for a path that has ended.
package struct FinishedRequest: Sendable {
    package let path: [UInt8]
    /// When it ended.
    package let tick: Int
    /// Of the latest request that was acknowledged.
    package internal(set) var effect: RequestEffect?
    /// Whether a request without a response may have been applied after it.
    package internal(set) var isUncertain = false
    let at: ContinuousClock.Instant
    /// The same moment, for what outlives the process.
    let date: Int64

    /// Whether the content at the path was changed, or may have been.
    var isOfContent: Bool { isUncertain || effect != nil && effect != .changed }
}

extension [FinishedRequest] {
    func latest(_ path: [UInt8]) -> FinishedRequest? {
        let index = position(of: path, by: \.path)
        return index < count && self[index].path == path ? self[index] : nil
    }
}
