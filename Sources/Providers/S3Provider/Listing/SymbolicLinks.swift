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
    /// The targets of links that were read lately, with the ETags of the objects.
    private let targets = Mutex<[KeyBytes: (tag: String, target: String)]>([:])

    init(client: S3Client, records: ObjectRecords) {
        self.client = client
        self.records = records
    }

    /// - Parameter name: of the link.
    /// - Throws: an error that is not about this object alone.
    func kind(of object: S3Object, name: String) async throws -> Kind {
        guard LinkNames.canBeTarget(object.size) else { return .file }
        do {
            guard let target = try await target(of: object) else { return .removed }
            return .link(
                RemoteEntry(
                    name: name, kind: .symbolicLink, tag: Array(object.tag.utf8), isTagStrong: true,
                    attributes: RemoteAttributes(
                        contentModificationDate: records.date(of: object), symbolicLinkTarget: target)))
        } catch let failure as S3Failure where failure.isAboutOneObject {
            // Else one such object would make its directory impossible to list.
            return .file
        }
    }

    /// - Returns: nil when the object was removed.
    private func target(of object: S3Object) async throws -> String? {
        let key = KeyBytes(object.key)
        if let known = targets.withLock({ $0[key] }), known.tag == object.tag { return known.target }
        do {
            let answer = try await client.send { [client] in client.request("GET", object.key) }
            let target = FileNameText.text(of: answer.body)
            // Another client may have written the object since it was listed.
            guard client.listsOtherTags || answer.fields["ETag"].map(S3Object.quoted) == object.tag else {
                return target
            }
            targets.withLock { targets in
                if targets.count > 1000 { targets.removeAll() }
                targets[key] = (object.tag, target)
            }
            return target
        } catch let failure as S3Failure where failure.status == 404 {
            return nil
        }
    }
}
