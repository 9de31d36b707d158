import FileProvider
import HTTPTransport
import PathAddressing

/// The date and the mode of an item, in a property of our own (RFC 4918 4.4 calls it dead): WebDAV has none for them that
/// can be set. They belong to the content that was there when they were set: who writes the file otherwise does not know
/// of them.
struct HeldAttributes: Hashable, Sendable {
    static let namespace = "urn:yonder"
    static let name = "attributes"
    private static let windows = "urn:schemas-microsoft-com:"

    var date: FileTimestamp?
    var permissions: UInt16?
    /// Which content they are of; empty for a directory's.
    var state: String

    init(_ attributes: RemoteAttributes, of resource: DAVResource) {
        date = resource.isCollection ? nil : attributes.contentModificationDate
        permissions = attributes.permissions
        state = Self.state(of: resource)
    }

    /// What a resource's property says; nil when it says nothing of the content that is there now.
    init?(of resource: DAVResource) {
        guard let text = resource.heldAttributes else { return nil }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2] == Self.state(of: resource) else { return nil }
        permissions = UInt16(words[0], radix: 8).map { $0 & 0o7777 }
        date = Int64(words[1]).map { FileTimestamp(nanosecondsSince1970: $0) }
        state = String(words[2])
    }

    private static func state(of resource: DAVResource) -> String {
        if resource.isCollection { return "" }
        return (resource.modifiedAt.map(String.init) ?? "?") + "-" + (resource.length.map(String.init) ?? "?")
    }

    private var text: String {
        (permissions.map { String($0, radix: 8) } ?? "-") + " "
            + (date.map { String($0.nanosecondsSince1970) } ?? "-") + " " + state
    }

    /// The body of a PROPPATCH that sets them, and the date also as Windows does.
    var update: [UInt8] {
        var properties = "<y:\(Self.name) xmlns:y=\"\(Self.namespace)\">\(text)</y:\(Self.name)>"
        if let date {
            let name = "Win32LastModifiedTime"
            properties += "<w:\(name) xmlns:w=\"\(Self.windows)\">\(HTTPDate.text(date.seconds))</w:\(name)>"
        }
        return Array(
            (#"<?xml version="1.0" encoding="utf-8"?><D:propertyupdate xmlns:D="DAV:"><D:set><D:prop>"# + properties
                + "</D:prop></D:set></D:propertyupdate>").utf8)
    }

    /// Whether it takes a request of its own to keep them: a usual mode, and a date that the server's own is close to,
    /// are not worth it.
    func areWorthKeeping(for resource: DAVResource) -> Bool {
        let usual: Set<UInt16> = resource.isCollection ? [0o755, 0o775] : [0o644, 0o664]
        if let permissions, !usual.contains(permissions) { return true }
        guard let date else { return false }
        guard let theirs = resource.modifiedAt else { return true }
        return abs(date.seconds - theirs) > Self.closeness
    }

    /// In seconds.
    private static let closeness: Int64 = 60
}

/// Keeping what WebDAV has no place for.
extension WebDAVRemote {
    /// Keeps attributes of a resource where that is worth a request.
    ///
    /// - Returns: what is kept now; nil when nothing is.
    func holdIfWorthIt(
        _ attributes: RemoteAttributes, of resource: DAVResource, at path: RemotePath
    ) async -> HeldAttributes? {
        let held = HeldAttributes(attributes, of: resource)
        guard held.areWorthKeeping(for: resource), (try? await hold(held, of: resource, at: path)) == true else {
            return nil
        }
        await tellOfAttributes()
        return held
    }

    /// Whether the server keeps attributes. Where nothing can be tried, as where nothing may be written, it does not.
    private func keepsAttributes(in directory: RemotePath) async throws -> Bool {
        do {
            return try await capabilities(probingIn: directory).keepsAttributes
        } catch let error as FileProviderError where [.cannotSynchronize, .insufficientQuota].contains(error.code) {
            return false
        }
    }

    /// From now on listings ask for attributes, here and where else the collection is mounted: its own property, which says
    /// nothing, says that there are some. Servers answer slower where they are asked for properties that they keep.
    private func tellOfAttributes() async {
        guard var capabilities = capabilityStore.capabilities, !capabilities.hasAttributes else { return }
        capabilities.hasAttributes = true
        capabilityStore.keep(capabilities)
        guard !asksForAttributes, let root = try? await sight(of: .root, isDirectory: true) else { return }
        _ = try? await hold(HeldAttributes(RemoteAttributes(), of: root.resource), of: root.resource, at: .root)
    }

    /// - Returns: whether the server says that it keeps them.
    func hold(_ held: HeldAttributes, of resource: DAVResource, at path: RemotePath) async throws -> Bool {
        let response = try await client.send(
            "PROPPATCH", client.url(of: path, isDirectory: resource.isCollection),
            ["Content-Type": "application/xml; charset=utf-8"], body: .bytes(held.update))
        guard response.head.isSuccess else { return false }
        guard response.status == 207 else { return true }
        // All or none are set; each says so in a line like HTTP/1.1 200 OK.
        let states = String(decoding: response.body, as: UTF8.self).split(separator: "HTTP/1.").dropFirst()
        return !states.isEmpty && states.allSatisfy { $0.split(separator: " ").dropFirst().first == "200" }
    }

    package func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await connect()
        let all: ItemFields = [.contentModificationDate, .permissions, .extendedAttributes]
        guard !isOwnCloud, try await keepsAttributes(in: path.parent) else { return (try await entry(at: path), all) }
        guard let there = try await sight(of: path, isDirectory: kind == .directory) else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no '\(path.name ?? "/")'")
        }
        var wanted = attributes
        let old = HeldAttributes(of: there.resource)
        wanted.permissions = attributes.permissions ?? old?.permissions
        wanted.contentModificationDate = attributes.contentModificationDate ?? old?.date
        let held = HeldAttributes(wanted, of: there.resource)
        guard held.permissions != nil || held.date != nil, try await hold(held, of: there.resource, at: path) else {
            return (there.entry, all)
        }
        await tellOfAttributes()
        let entry = there.entry.with(held)
        return (entry, held.date == nil ? [.contentModificationDate, .extendedAttributes] : [.extendedAttributes])
    }
}

extension RemoteEntry {
    /// With what the server keeps for us.
    func with(_ held: HeldAttributes?) -> RemoteEntry {
        var entry = self
        if let date = held?.date { entry.attributes.contentModificationDate = date }
        if let permissions = held?.permissions { entry.attributes.permissions = permissions }
        return entry
    }
}
