/// How to mount: a source on a directory, or a known domain where it was.
package struct MountArguments: Codable, Hashable, Sendable {
    /// Nil for a known domain.
    package var source: String?
    package var directory: String?
    /// The domain's name; with a source, nil for one made of the directory's.
    package var name: String?
    /// In bytes; nil for as before.
    package var cacheLimit: Given<Int64>?
    /// Nil for as before.
    package var pollSeconds: Given<Double>?
    /// Whether every change is refused; nil for as before.
    package var isReadOnly: Bool?
    /// How long content is kept that nobody opens; nil for as before.
    package var cacheSeconds: Given<Double>?
    /// Whether `fsync` waits for the remote; nil for as before.
    package var waitsForRemote: Bool?
    /// Names that are never sent; nil for those of before.
    package var ignoredNames: [String]?
    /// Whether other users may use the mount; nil for as before.
    package var allowsOthers: Bool?
    /// Whether device files in the mount can be opened; nil for as before.
    package var allowsDevices: Bool?
    /// Whether set-user-ID and set-group-ID bits and file capabilities in the mount count; nil for as before.
    package var allowsSetID: Bool?
    /// Who the remote is to let in; nil for whom it let in before. Never logged.
    package var credentials: GivenCredentials?
    /// Where an object store is, as far as the source does not say so; nil for where it was before.
    package var objectStore: ObjectStoreOptions?

    package init(
        source: String?, directory: String?, name: String?, cacheLimit: Given<Int64>? = nil,
        pollSeconds: Given<Double>? = nil, isReadOnly: Bool? = nil, cacheSeconds: Given<Double>? = nil,
        waitsForRemote: Bool? = nil,
        ignoredNames: [String]? = nil, allowsOthers: Bool? = nil, allowsDevices: Bool? = nil, allowsSetID: Bool? = nil,
        credentials: GivenCredentials? = nil, objectStore: ObjectStoreOptions? = nil
    ) {
        self.cacheSeconds = cacheSeconds
        self.waitsForRemote = waitsForRemote
        self.ignoredNames = ignoredNames
        self.allowsOthers = allowsOthers
        self.allowsDevices = allowsDevices
        self.allowsSetID = allowsSetID
        self.source = source
        self.directory = directory
        self.name = name
        self.cacheLimit = cacheLimit
        self.pollSeconds = pollSeconds
        self.isReadOnly = isReadOnly
        self.credentials = credentials
        self.objectStore = objectStore
    }
}

/// What an option was given: a value, or that it is as if it had never been given.
package enum Given<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    case value(Value)
    case none

    /// The value, or nil where none is wanted.
    package var value: Value? {
        if case .value(let value) = self { value } else { nil }
    }
}

/// Where an object store is, and who is meant to ask it. Nothing of it is secret.
package struct ObjectStoreOptions: Codable, Hashable, Sendable {
    /// `https://HOST:PORT`; nil for Amazon's own.
    package var endpoint: String?
    package var region: String?
    /// In `~/.aws`.
    package var profile: String?

    package init(endpoint: String? = nil, region: String? = nil, profile: String? = nil) {
        self.endpoint = endpoint
        self.region = region
        self.profile = profile
    }

    /// What is said by others, where this says nothing.
    package func merging(_ others: ObjectStoreOptions?) -> ObjectStoreOptions {
        ObjectStoreOptions(
            endpoint: endpoint ?? others?.endpoint, region: region ?? others?.region,
            profile: profile ?? others?.profile)
    }
}
