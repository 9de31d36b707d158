import FileProvider
import HTTPTransport

/// The present credentials of a bucket's requests. Finds them with ``CredentialSearch``, and renews them before they expire,
/// once for all requests that need them.
actor CredentialSource {
    private let profile: String?
    private let region: String
    private let surroundings: @Sendable () -> [String: String]
    private let transport: CredentialTransport
    private var current: Present?
    private let searching = SharedTask<S3Credentials>()

    private struct Present {
        var credentials: S3Credentials
        /// The environment in which they were found.
        var environment: [String: String]
        var foundAt: ContinuousClock.Instant
        /// When they are searched again, in seconds since 1970; nil for never.
        var renewal: Int64?
        /// When the environment is compared again, in seconds since 1970.
        var comparison: Int64
    }

    /// The longest time, in seconds, that is left when credentials are renewed.
    private static let margin: Int64 = 300
    /// The environment is compared after so many seconds: the user may have mounted from another shell.
    private static let age: Int64 = 60
    /// The pause after a renewal that failed, in seconds, while the credentials are still valid.
    private static let pause: Int64 = 30

    /// - Parameters:
    ///   - profile: the profile that the user chose.
    ///   - region: the region of services without one of their own.
    init(
        profile: String?, region: String, environment: @escaping @Sendable () -> [String: String],
        transport: HTTPTransport
    ) {
        self.profile = profile
        self.region = region
        surroundings = environment
        self.transport = CredentialTransport(transport.configuration, logger: transport.logger)
    }

    /// - Parameter now: seconds since 1970.
    /// - Throws: `notAuthenticated` with the places that were searched.
    func credentials(now: Int64) async throws -> S3Credentials {
        if let current = valid(now: now) { return current }
        return try await searching.value {
            // A search may just have ended.
            if let current = await self.valid(now: now) { return current }
            return try await self.search(now: now)
        }
    }

    private func valid(now: Int64) -> S3Credentials? {
        guard let current, current.renewal.map({ now < $0 }) ?? true else { return nil }
        if now >= current.comparison {
            guard surroundings() == current.environment else { return nil }
            self.current?.comparison = now + Self.age
        }
        return current.credentials
    }

    /// Finds credentials for all requests that wait for them.
    private func search(now: Int64) async throws -> S3Credentials {
        do {
            let environment = surroundings()
            let found = try await CredentialSearch(
                profile: profile, region: region, environment: environment, transport: transport
            ).find()
            current = Present(
                credentials: found.credentials, environment: environment, foundAt: .now,
                // Credentials that live shorter than the margin are used for most of their life.
                renewal: found.credentials.expiration.map { $0 - min(Self.margin, max(0, $0 - now) / 4) }
                    ?? found.lifetime.map { now + $0 }, comparison: now + Self.age)
            return found.credentials
        } catch {
            // Credentials that are valid for a while are better than none.
            if let current, let end = current.credentials.expiration, end > now {
                self.current?.renewal = min(end, now + Self.pause)
                self.current?.comparison = now + Self.age
                return current.credentials
            }
            current = nil
            throw error
        }
    }

    /// The server did not accept the credentials of a request any more.
    ///
    /// - Parameter start: when the request began. Newer credentials are not renewed because of it.
    /// - Returns: whether there are other credentials now.
    func renew(after start: ContinuousClock.Instant, now: Int64) async -> Bool {
        let refused = current
        if let refused, refused.foundAt > start { return true }
        current = nil
        guard let new = try? await credentials(now: now) else { return false }
        return new != refused?.credentials
    }
}
