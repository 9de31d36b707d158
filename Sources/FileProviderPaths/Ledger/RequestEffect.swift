/// What a request does to each of its paths.
package enum RequestEffect: Sendable, Hashable, Codable {
    /// - Parameter tag: of the new content, where it is known.
    case written(tag: String?)
    case deleted
    /// What became of it is found out by looking: an unknown outcome puts no path in doubt.
    case changed

    var tag: String? {
        if case .written(let tag) = self { return tag }
        return nil
    }
}
