import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// The attributes of files that were kept of a removed domain.
@Suite struct KeptAttributesTests {
    @Test(
        "REMOVE-5: set-ID bits of another machine's file are not kept, those of a folder's file with its owner are",
        arguments: [("/folder", true, 0o6755), ("/folder", false, 0o755), ("sftp://host/", true, 0o755)]
            as [(String, Bool, UInt16)])
    func setID(source: String, isOwners: Bool, permissions: UInt16) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        _ = try directory.makeDirectory(Manifest.files)
        let file = try directory.makeFile("\(Manifest.files)/file", Array("x".utf8))
        let status = try FileStatus(at: file)
        let modified = status.modified.seconds * 1_000_000_000 + status.modified.nanoseconds
        let writer = try ManifestWriter(
            at: directory[Manifest.fileName],
            Manifest.Header(
                format: Manifest.format, version: Manifest.version, domain: "d", source: source, keep: "downloaded"))
        // Without a group the owner is left as it is, as it is where this user cannot change it.
        try writer.add(
            Manifest.Item(
                path: "file", kind: InodeKind.file.rawValue, size: 1, isHere: true, changedFields: 0, heldFields: 0,
                isExcluded: false, permissions: 0o6755, owner: status.owner + (isOwners ? 0 : 1),
                group: isOwners ? status.group : nil, modified: modified, created: modified))
        writer.beginRemoved()
        try writer.finish()
        try Keeping.restoreAttributes(in: directory.path)
        #expect(try FileStatus(at: file).permissions == permissions)
    }
}
