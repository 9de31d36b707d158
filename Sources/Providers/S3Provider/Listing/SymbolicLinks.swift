import FileNames
import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// Symbolic links: objects whose key says what they are, so that a listing shows it.
final class SymbolicLinks: Sendable {
    /// What an object with the key of a link is shown as.
    enum Kind {
        case link(RemoteEntry)
        /// Its content cannot be a target, or cannot be read.
        case file
        case removed
    }

    private let client: S3Client
    private let records: ObjectRecords
    /// How many links are read at once.
    private static let width = 32

    init(client: S3Client, records: ObjectRecords) {
        self.client = client
        self.records = records
    }

    /// - Parameter name: of the link.
    /// - Throws: an error that is not about this object alone.
    func kind(of object: S3Object, name: String) async throws -> Kind {
        let reading = try await reading(object, name: name)
        note([(object, reading)])
        return reading.kind
    }

    /// What objects are shown as. Those that are not known yet are read, some at a time.
    ///
    /// - Parameter objects: with the names of the links.
    func kinds(of objects: [(object: S3Object, name: String)]) async throws -> [Kind] {
        let found = Mutex<[Int: Reading]>([:])
        // Also where reading one of them fails: the next attempt does not read the others again.
        defer { note(found.withLock { $0 }.map { (objects[$0.key].object, $0.value) }) }
        try await inParallel(Array(objects.indices), width: Self.width) { [self] index in
            let reading = try await reading(objects[index].object, name: objects[index].name)
            found.withLock { $0[index] = reading }
        }
        let readings = found.withLock { $0 }
        return objects.indices.map { readings[$0]?.kind ?? .removed }
    }

    private struct Reading {
        var kind: Kind
        /// The target that was read, where it is that of the listed version.
        var target: String?
    }

    private func note(_ readings: [(object: S3Object, reading: Reading)]) {
        var targets: [(object: S3Object, target: String)] = []
        for (object, reading) in readings {
            if let target = reading.target { targets.append((object, target)) }
        }
        if !targets.isEmpty { records.note(targets: targets) }
    }

    private func reading(_ object: S3Object, name: String) async throws -> Reading {
        guard LinkNames.canBeTarget(object.size) else { return Reading(kind: .file) }
        func link(to target: String) -> Kind {
            .link(
                RemoteEntry(
                    name: name, kind: .symbolicLink, tag: Array(object.tag.utf8), isTagStrong: true,
                    attributes: RemoteAttributes(
                        contentModificationDate: records.date(of: object), symbolicLinkTarget: target)))
        }
        if let known = records.target(of: object) { return Reading(kind: link(to: known)) }
        do {
            let answer = try await client.send { [client] in client.request("GET", object.key) }
            // Another client may have written something longer since it was listed.
            guard LinkNames.canBeTarget(Int64(answer.body.count)) else { return Reading(kind: .file) }
            let target = FileNameText.text(of: answer.body)
            // Another client may have written the object since it was listed.
            let isListed = client.listsOtherTags || answer.fields["ETag"].map(S3Object.quoted) == object.tag
            return Reading(kind: link(to: target), target: isListed ? target : nil)
        } catch let failure as S3Failure where failure.status == 404 {
            return Reading(kind: .removed)
        } catch let failure as S3Failure where failure.isAboutOneObject {
            // Else one such object would make its directory impossible to list.
            return Reading(kind: .file)
        }
    }
}
