import FileProvider
import FileProviderTesting

extension RemoteTree {
    /// Adds directories with 60 files each: the removal of two of three is held. The content of `one/one-0` is `one 0`.
    mutating func addFullDirectories(_ names: [String] = ["one", "two", "three"]) {
        for name in names {
            addDirectory(name, identifier: ItemIdentifier(name))
            for number in 0..<60 {
                addFile("\(name)-\(number)", in: ItemIdentifier(name), content: RemoteContent("\(name) \(number)"))
            }
        }
    }
}

extension Machine {
    /// The remote deletes two full directories, and the machine asks for changes.
    func loseTwoDirectories() async throws {
        provider.change { tree in
            tree.delete("one")
            tree.delete("two")
        }
        try await ingest()
    }
}
