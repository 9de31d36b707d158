import FileProvider
import Synchronization

/// Contents whose upload had no response, with the dates that the files have here.
///
/// After a lost response the system recognizes what it sent by size and date. A remote that shows the date of the upload
/// instead would turn it into a stranger. The records outlive the process; an upload that is forgotten becomes a stranger.
///
/// A record is of one place: the names from the root of the remote down to the file, with `/` between them. Elsewhere a file
/// with the same name and content may have another date.
package final class SentContents: Sendable {
    /// What one content is told from another by.
    package enum Mark: Hashable, Sendable, Codable {
        /// The tag that the remote gives it.
        case tag([UInt8])
        /// SHA-256, where the tag is not known in advance.
        case digest([UInt8])
        /// The date, where the server was told the date and keeps it in seconds.
        case seconds(Int64)

        /// What comes behind the place in the key of a record.
        fileprivate var bytes: [UInt8] {
            switch self {
            case .tag(let tag): [0, 2] + tag
            case .digest(let digest): [0, 0] + digest
            case .seconds(let seconds): [0, 1] + Array(String(seconds).utf8)
            }
        }
    }

    package struct Content: Sendable, Codable {
        fileprivate var place: [UInt8]
        package var mark: Mark
        /// Nil where the tag says enough.
        package var size: Int64?
        package var date: FileTimestamp?
        /// The mode that it was sent with; nil where it has none.
        fileprivate var permissions: UInt16?
        /// The tag with which the same content was acknowledged when it was sent again; nil if it was not.
        package var acknowledgedTag: [UInt8]?
        /// Tags of other contents that had its place and its size. One that is forgotten is compared once more.
        fileprivate var strangers: Set<[UInt8]> = []
        private static let mostStrangers = 64

        fileprivate var key: [UInt8] { place + mark.bytes }

        fileprivate mutating func noteStranger(_ tag: [UInt8]) {
            if strangers.count >= Self.mostStrangers { strangers = acknowledgedTag.map { [$0] } ?? [] }
            strangers.insert(tag)
        }
    }

    private struct State {
        var contents: [[UInt8]: [Content]] = [:]
        /// The oldest first.
        var order: [(place: [UInt8], mark: Mark)] = []
        /// The acknowledged contents whose records are still stored, the oldest first.
        var acknowledged: [(content: Content, at: ContinuousClock.Instant)] = []

        /// - Returns: the content that had this place and mark.
        mutating func remove(_ place: [UInt8], _ mark: Mark) -> Content? {
            guard let index = contents[place]?.firstIndex(where: { $0.mark == mark }) else { return nil }
            order.removeAll { $0.mark == mark && $0.place == place }
            let removed = contents[place]?.remove(at: index)
            if contents[place]?.isEmpty == true { contents[place] = nil }
            return removed
        }

        /// - Returns: whether the place had no content with the mark.
        mutating func add(_ content: Content) -> Bool {
            let earlier = remove(content.place, content.mark)
            contents[content.place, default: []].append(content)
            order.append((content.place, content.mark))
            return earlier == nil
        }
    }

    private let state: Mutex<State>
    private let kept: SurvivingRecords<Content>
    private static let most = 2000
    /// The system has stored an acknowledgement by then.
    private static let patience = Duration.seconds(10)

    /// - Parameter store: keeps the contents across a restart.
    package init(in store: ReportingStore) {
        kept = SurvivingRecords("sent", in: store)
        var found = State()
        for (_, content) in kept.all { _ = found.add(content) }
        state = Mutex(found)
    }

    /// An upload is about to be sent, or had no response.
    ///
    /// - Parameters:
    ///   - date: nil is nothing to be recognized for, without an acknowledged tag.
    ///   - permissions: the mode that it has then, where the remote stores modes but does not list them.
    ///   - acknowledgedTag: with which the same content was acknowledged when it was sent again.
    /// - Returns: whether this is the only upload that the record is of.
    @discardableResult
    package func note(
        _ place: String, _ mark: Mark, size: Int64? = nil, date: FileTimestamp?, permissions: UInt16? = nil,
        acknowledgedTag: [UInt8]? = nil
    ) -> Bool {
        guard date != nil || acknowledgedTag != nil else { return false }
        return note(
            Content(
                place: Array(place.utf8), mark: mark, size: size, date: date, permissions: permissions,
                acknowledgedTag: acknowledgedTag, strangers: acknowledgedTag.map { [$0] } ?? []))
    }

    @discardableResult
    private func note(_ content: Content) -> Bool {
        let (isFirst, forgotten) = state.withLock { state -> (Bool, Content?) in
            let isFirst = state.add(content)
            guard state.order.count > Self.most else { return (isFirst, nil) }
            let oldest = state.order[0]
            return (isFirst, state.remove(oldest.place, oldest.mark))
        }
        kept.set(content.key, content)
        if let forgotten { kept.remove(forgotten.key) }
        return isFirst
    }

    /// An item is about to be moved: what was sent to its place, or to one below, may be at the new one, too.
    package func carry(_ place: String, to newPlace: String) {
        let (old, new) = (Array(place.utf8), Array(newPlace.utf8))
        guard old != new else { return }
        let below = old + [UInt8(ascii: "/")]
        let moved = state.withLock { state in
            state.contents.filter { $0.key == old || $0.key.starts(with: below) }.flatMap(\.value)
        }
        for var content in moved {
            content.place = new + content.place.dropFirst(old.count)
            note(content)
        }
    }

    /// The upload was acknowledged. Its record stays for a moment: a daemon that is killed before the system has stored the
    /// acknowledgement leaves it to the next one.
    package func acknowledge(_ place: String, _ mark: Mark) {
        let isFirst = state.withLock { state in
            guard let content = state.remove(Array(place.utf8), mark) else { return false }
            state.acknowledged.append((content, .now))
            return state.acknowledged.count == 1
        }
        if isFirst { removeAcknowledgedLater() }
    }

    private func removeAcknowledgedLater() {
        Task { [weak self] in
            try? await Task.sleep(for: Self.patience)
            if let self, self.removeAcknowledged(until: .now - Self.patience / 2) { self.removeAcknowledgedLater() }
        }
    }

    /// No request is under way any more, and no acknowledgement will be stored.
    package func close() { _ = removeAcknowledged(until: .now) }

    /// - Returns: whether there are later ones.
    private func removeAcknowledged(until end: ContinuousClock.Instant) -> Bool {
        let (keys, isMore) = state.withLock { state in
            let passed = state.acknowledged.prefix { $0.at <= end }.map(\.content)
            state.acknowledged.removeFirst(passed.count)
            // The same content may have been sent again.
            let keys = passed.filter { content in
                state.contents[content.place]?.contains { $0.mark == content.mark } != true
            }.map(\.key)
            return (keys, !state.acknowledged.isEmpty)
        }
        for key in keys { kept.remove(key) }
        return isMore
    }

    /// The upload has certainly not reached its path.
    package func forget(_ place: String, _ mark: Mark) {
        let removed = state.withLock { $0.remove(Array(place.utf8), mark) }
        if let removed { kept.remove(removed.key) }
    }

    /// What is at a place has got another date: no upload gives it the date that it was sent with any more.
    package func forgetAll(_ place: String) {
        let bytes = Array(place.utf8)
        let keys = state.withLock { state -> [[UInt8]] in
            let unanswered = state.contents.removeValue(forKey: bytes) ?? []
            state.order.removeAll { $0.place == bytes }
            let acknowledged = state.acknowledged.map(\.content).filter { $0.place == bytes }
            state.acknowledged.removeAll { $0.content.place == bytes }
            return (unanswered + acknowledged).map(\.key)
        }
        for key in keys { kept.remove(key) }
    }

    /// The content with a tag has a date of its own on the remote, which is not taken for the one that it was sent with.
    package func noteDated(_ place: String, tag: [UInt8]) {
        let bytes = Array(place.utf8)
        let (changed, isForgotten) = state.withLock { state -> ([Content], Bool) in
            var contents = state.contents[bytes] ?? []
            for index in contents.indices {
                // Content that was sent again is still to be recognized, but not for its date.
                if contents[index].acknowledgedTag != nil {
                    contents[index].date = nil
                } else {
                    contents[index].noteStranger(tag)
                }
            }
            if !contents.isEmpty { state.contents[bytes] = contents }
            let isForgotten = contents.contains { $0.mark == .tag(tag) && $0.acknowledgedTag == nil }
            return (contents.filter { $0.acknowledgedTag != nil }, isForgotten)
        }
        for content in changed { kept.set(content.key, content) }
        if isForgotten { forget(place, .tag(tag)) }
    }

    /// Whether nothing is recorded, as is usual: nothing has to be looked for then.
    package var isEmpty: Bool { state.withLock { $0.contents.isEmpty } }

    /// The date of the content with a tag; nil for all other contents.
    package func date(_ place: String, tag: [UInt8]) -> FileTimestamp? {
        state.withLock { $0.contents[Array(place.utf8)]?.first { $0.mark == .tag(tag) }?.date }
    }

    /// The mode that the content with a tag was sent with; nil for all other contents.
    package func permissions(_ place: String, tag: [UInt8]) -> UInt16? {
        state.withLock { $0.contents[Array(place.utf8)]?.first { $0.mark == .tag(tag) }?.permissions }
    }

    /// The tag with which the content with another tag was acknowledged; nil for all other contents.
    package func acknowledgedTag(_ place: String, tag: [UInt8]) -> [UInt8]? {
        state.withLock { $0.contents[Array(place.utf8)]?.first { $0.mark == .tag(tag) }?.acknowledgedTag }
    }

    /// The contents without a known tag that a file may hold.
    package func candidates(_ place: String, size: Int64, tag: [UInt8]) -> [Content] {
        state.withLock { state in
            (state.contents[Array(place.utf8)] ?? []).filter { $0.size == size && !$0.strangers.contains(tag) }
        }
    }

    /// Notes which content has a tag.
    ///
    /// - Parameter found: nil for content from another client.
    package func settle(_ place: String, tag: [UInt8], as found: Content?) {
        let bytes = Array(place.utf8)
        let removed = state.withLock { state in
            for index in (state.contents[bytes] ?? []).indices { state.contents[bytes]?[index].noteStranger(tag) }
            return found.flatMap { state.remove(bytes, $0.mark) }
        }
        if let removed { kept.remove(removed.key) }
    }
}
