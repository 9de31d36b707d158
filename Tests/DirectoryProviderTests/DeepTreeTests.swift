import FileProvider
import FileProviderTesting
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Trees that are removed although a stack has not as many frames, and this process not as many descriptors, as they have levels.
@Suite struct DeepTreeTests {
    /// Makes a directory `d` with a file `f` in each other.
    private func makeTree(in directory: FileDescriptor, depth: Int) throws {
        var current = try directory.duplicateCloseOnExec()
        for _ in 0..<depth {
            let outer = current
            defer { try? outer.close() }
            try outer.makeDirectory(named: "d", permissions: 0o700)
            try outer.makeFile(named: "f", permissions: 0o600).close()
            current = try outer.openDirectory(named: "d")
        }
        try current.close()
    }

    @Test("a tree of any depth is searched and removed with few descriptors", arguments: [false, true])
    func removed(isSearched: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let folder = try #require(session.provider as? DirectoryProvider).folder
            if isSearched {
                // Another write that was interrupted: its file and its new content are searched for.
                let edit = InPlaceEdit(
                    directory: [], name: "elsewhere", file: "unknown", copy: InPlaceEdit.makeCopyName(), begun: 0)
                try session.manager.store.put(edit, at: edit.key, in: InPlaceEdit.namespace, durability: .synced)
            }
            try await remote.makeDirectory("directory")
            let directory = try FileDescriptor.openDirectory(remote.root.appending("directory"))
            defer { try? directory.close() }
            try makeTree(in: directory, depth: 3000)
            var highest: Int32 = 0
            try folder.remove(directory.names(), in: directory, parent: .rootContainer) {
                let free = try directory.duplicateCloseOnExec()
                highest = max(highest, free.rawValue)
                try free.close()
            }
            #expect(try directory.names().isEmpty)
            // Other tests open files, too.
            #expect(highest < 1500)
        }
    }

    @Test("a removal does not go up to where another program has moved a directory of the tree meanwhile")
    func movedMeanwhile() throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let root = try FileDescriptor.openDirectory(scratch.makeDirectory("root"))
        defer { try? root.close() }
        let other = try FileDescriptor.openDirectory(scratch.makeDirectory("other"))
        defer { try? other.close() }
        try other.makeFile(named: "f", permissions: 0o600).close()
        try makeTree(in: root, depth: 100)
        let first = try root.openDirectory(named: "d")
        defer { try? first.close() }
        var names = 0
        do {
            // At the 80th name at least 40 levels have been entered, and the first ones are not open any more.
            try root.remove([Array("d".utf8)]) { _, _ in
                names += 1
                if names == 80 { try first.rename("d", to: "moved", in: other) }
            }
            Issue.record("the directory above is another one")
        } catch {
            #expect(error as? Errno == .resourceBusy)
        }
        #expect(try Set(other.names().map { String(decoding: $0, as: UTF8.self) }) == ["f", "moved"])
    }
}
