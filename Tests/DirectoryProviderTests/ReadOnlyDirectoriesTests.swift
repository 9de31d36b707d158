import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// The modes of directories while an ordinary user's changes are stored in them.
@Suite struct ReadOnlyDirectoriesTests {
    /// Runs a body with an open directory of mode 0500.
    private func withDirectory(_ body: (FileDescriptor, () throws -> UInt16) throws -> Void) throws {
        let temporary = try TemporaryDirectory()
        defer { temporary.remove() }
        let path = try temporary.makeDirectory("directory")
        let directory = try FileDescriptor.openDirectory(path)
        defer { try? directory.close() }
        try directory.setPermissions(0o500)
        try body(directory) { try FileStatus(of: directory).permissions }
        try directory.setPermissions(0o700)
    }

    @Test(
        "FOLDER-8: a directory is writable during a change, is shown read-only, and is read-only after the last change")
    func restored() throws {
        try withDirectory { directory, mode in
            let directories = ReadOnlyDirectories(isRoot: false)
            try directories.writing(to: [directory]) {
                let during = try directories.writing(to: [directory, directory], mode)
                #expect(during == 0o700)
                #expect(try mode() == 0o700)
                #expect(try directories.permissions(of: FileStatus(of: directory)) == 0o500)
            }
            #expect(try mode() == 0o500)
        }
    }

    @Test(
        "FOLDER-8: a directory that is made read-only while a change is stored in it is writable until the change ends")
    func madeReadOnly() throws {
        try withDirectory { directory, mode in
            try directory.setPermissions(0o700)
            let directories = ReadOnlyDirectories(isRoot: false)
            try directories.writing(to: [directory]) {
                try directories.setPermissions(of: directory, to: 0o500)
                #expect(try mode() == 0o700)
            }
            #expect(try mode() == 0o500)
        }
    }

    @Test("FOLDER-8: a change that is not denied gets no rights, and keeps those it has until it ends")
    func kept() throws {
        try withDirectory { directory, mode in
            let directories = ReadOnlyDirectories(isRoot: false)
            try directories.writing(below: directory, along: [[]], isGranting: false) {
                let (before, during) = (try mode(), try directories.writing(below: directory, along: [[]], mode))
                #expect((before, during) == (0o500, 0o700))
            }
            #expect(try mode() == 0o500)
            try directory.setPermissions(0o700)
            try directories.writing(below: directory, along: [[]], isGranting: false) {
                try directories.setPermissions(of: directory, to: 0o400)
                #expect(try mode() == 0o700)
            }
            #expect(try mode() == 0o400)
        }
    }

    @Test("FOLDER-8: permissions that are stored during a change stay", arguments: [0o700, 0o550] as [UInt16])
    func changed(permissions: UInt16) throws {
        try withDirectory { directory, mode in
            let directories = ReadOnlyDirectories(isRoot: false)
            try directories.writing(to: [directory]) {
                try directories.setPermissions(of: directory, to: permissions)
                #expect(try mode() == permissions | 0o300)
                #expect(try directories.permissions(of: FileStatus(of: directory)) == permissions)
            }
            #expect(try mode() == permissions)
        }
    }
}
