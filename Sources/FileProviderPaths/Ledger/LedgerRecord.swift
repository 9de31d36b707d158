/// What outlives the process: a request that may have been applied, or may yet be, or what is known of a path.
package struct LedgerRecord: Codable, Sendable {
    /// What has to be written to disk: a record by its name, nil when it is over.
    package typealias Change = (name: [UInt8], record: LedgerRecord?)

    /// What is known of the content at a path.
    struct Ended: Codable, Sendable {
        var effect: RequestEffect?
        var isUncertain: Bool
    }

    /// Empty for requests of which only is known that they were in flight when the process was killed.
    var path: [UInt8]
    var tag: String?
    /// Seconds since 1970.
    var sentAt: Int64
    /// Whether the content was seen at its path, or acknowledged, since it was last deleted.
    var isSeen = false
    /// The move that the request makes: it has no path of its own.
    var move: PossibleMoves.Move?
    /// Nil for a request without a response.
    var ended: Ended?

    init(path: [UInt8], tag: String?, sentAt: Int64) {
        (self.path, self.tag, self.sentAt) = (path, tag, sentAt)
    }

    init(move: PossibleMoves.Move) {
        self.init(path: [], tag: nil, sentAt: 0)
        self.move = move
    }

    init(_ one: FinishedRequest, isUncertain: Bool) {
        self.init(path: one.path, tag: nil, sentAt: one.date)
        ended = Ended(effect: one.effect, isUncertain: isUncertain)
    }

    var name: [UInt8] {
        if let move { return move.key }
        if ended != nil { return Self.name(ofEnded: path) }
        return path + [0] + Array((tag ?? "").utf8)
    }

    /// No path and no identifier begins with a zero byte.
    static func name(ofEnded path: [UInt8]) -> [UInt8] { [0, 0] + path }
}
