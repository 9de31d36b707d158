import Synchronization

/// The listings that continue, by their tokens.
final class OpenListings: Sendable {
    private struct Listing {
        var stream: ListingStream
        var part = 0
        var usedAt: ContinuousClock.Instant
    }

    private let listings = Mutex((last: 0, all: [Int: Listing]()))
    /// A listing that is not continued within this time is ended.
    private static let patience = Duration.seconds(300)

    /// - Returns: the token of the next part.
    func keep(_ stream: ListingStream) -> [UInt8] {
        let now = ContinuousClock.now
        let (token, old) = listings.withLock { listings in
            let old = listings.all.filter { now - $0.value.usedAt > Self.patience }
            for number in old.keys { listings.all[number] = nil }
            listings.last += 1
            listings.all[listings.last] = Listing(stream: stream, usedAt: now)
            return (Self.token(listings.last, 0), old.values.map(\.stream))
        }
        for stream in old { stream.cancel() }
        return token
    }

    func stream(_ token: [UInt8]) -> ListingStream? {
        listings.withLock { listings in
            guard let (number, part) = Self.parts(of: token), listings.all[number]?.part == part else { return nil }
            listings.all[number]?.usedAt = .now
            return listings.all[number]?.stream
        }
    }

    /// - Returns: the token of the part after that of a token; nil for an unknown token.
    func advance(_ token: [UInt8]) -> [UInt8]? {
        listings.withLock { listings in
            guard let (number, part) = Self.parts(of: token), listings.all[number] != nil else { return nil }
            listings.all[number]?.part = part + 1
            return Self.token(number, part + 1)
        }
    }

    func end(_ token: [UInt8]) {
        let stream = listings.withLock { listings in
            Self.parts(of: token).flatMap { listings.all.removeValue(forKey: $0.number)?.stream }
        }
        stream?.cancel()
    }

    func endAll() {
        let all = listings.withLock { exchange(&$0.all, with: [:]) }
        for listing in all.values { listing.stream.cancel() }
    }

    private static func token(_ number: Int, _ part: Int) -> [UInt8] { Array("\(number).\(part)".utf8) }

    private static func parts(of token: [UInt8]) -> (number: Int, part: Int)? {
        let parts = String(decoding: token, as: UTF8.self).split(separator: ".").compactMap { Int($0) }
        return parts.count == 2 ? (parts[0], parts[1]) : nil
    }
}
