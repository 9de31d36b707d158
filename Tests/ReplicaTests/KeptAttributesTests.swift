import FileProvider
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

    @Test("REMOVE-2: what was changed in the kept folder before its files got their attributes stays changed")
    func changedBefore() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let writer = try ManifestWriter(
            at: directory[Manifest.fileName],
            Manifest.Header(
                format: Manifest.format, version: Manifest.version, domain: "d", source: "sftp://host/",
                keep: "downloaded"))
        var places: [FilePath] = []
        for kind in [InodeKind.directory, .file] {
            for name in ["a", "b"] {
                let path = "\(kind)-\(name)"
                let place =
                    try kind == .directory
                    ? directory.makeDirectory("\(Manifest.files)/\(path)")
                    : directory.makeFile("\(Manifest.files)/\(path)", Array("x".utf8))
                try place.setPermissions(0o700)
                let modified = FileTimestamp(try FileStatus(at: place).modified).nanosecondsSince1970
                try writer.add(
                    Manifest.Item(
                        path: path, kind: kind.rawValue, size: 1, isHere: true, changedFields: 0, heldFields: 0,
                        isExcluded: false, permissions: 0o755, modified: modified, created: modified))
                places.append(place)
            }
        }
        writer.beginRemoved()
        try writer.finish()
        let end = try FileStatus(at: directory[Manifest.fileName]).modified
        for place in places where place.string.hasSuffix("b") {
            // The clock of the file system may not have gone on since.
            repeat { try place.setPermissions(0o750) } while try FileStatus(at: place).changed == end
        }
        try Keeping.restoreAttributes(in: directory.path)
        #expect(try places.map { try FileStatus(at: $0).permissions } == [0o755, 0o750, 0o755, 0o750])
        // As after a removal that was killed when it had done that.
        for place in places { try place.setPermissions(0o700) }
        try Keeping.restoreAttributes(in: directory.path)
        #expect(try places.map { try FileStatus(at: $0).permissions } == [0o700, 0o700, 0o700, 0o700])
    }

    @Test(
        "REMOVE-2: a file whose attributes were half restored gets the rest, but for what was changed since",
        arguments: [
            (InodeKind.file, 0o600, 0o644), (.file, 0o640, 0o640), (.file, 0o644, 0o644), (.directory, 0o700, 0o644),
        ]
            as [(InodeKind, UInt16, UInt16)])
    func cutShortWithin(kind: InodeKind, left: UInt16, wanted: UInt16) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        _ = try directory.makeDirectory(Manifest.files)
        let place =
            try kind == .directory
            ? directory.makeDirectory("\(Manifest.files)/item")
            : directory.makeFile("\(Manifest.files)/item", Array("x".utf8))
        let item = Manifest.Item(
            path: "item", kind: kind.rawValue, size: 1, isHere: true, changedFields: 0, heldFields: 0,
            isExcluded: false, permissions: 0o644, modified: 1_000_000_007_123_456_789, created: 0)
        let writer = try ManifestWriter(
            at: directory[Manifest.fileName],
            Manifest.Header(
                format: Manifest.format, version: Manifest.version, domain: "d", source: "sftp://host/",
                keep: "downloaded"))
        try writer.add(item)
        writer.beginRemoved()
        try writer.finish()
        let end = try FileStatus(at: directory[Manifest.fileName]).modified
        try place.setModificationTime(to: item.beingRestored)
        repeat { try place.setPermissions(left) } while try FileStatus(at: place).changed == end
        if kind == .file { #expect(try item.isAsKept(FileStatus(at: place))) }
        try Keeping.restoreAttributes(in: directory.path)
        #expect(try FileStatus(at: place).permissions == wanted)
        #expect(try FileStatus(at: place).modified == FileMoment(item.modified))
        // Once: it is the user's now.
        try place.setPermissions(left)
        try Keeping.restoreAttributes(in: directory.path)
        #expect(try FileStatus(at: place).permissions == left)
    }
}
