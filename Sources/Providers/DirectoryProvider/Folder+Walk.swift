import FileNames
import Syscalls
import SystemPackage

extension Folder {
    func walk() -> FolderIndex.Places { walk { _, _ in } }

    /// Skips trashes, hidden directories, other file systems, and directories that cannot be read.
    ///
    /// - Parameters:
    ///   - mostNames: opens no more directories after this many names.
    ///   - hidden: called with each hidden name and the names from the root down to its directory.
    func walk(
        mostNames: Int = FolderIndex.mostNames, hidden: (_ name: [UInt8], _ directory: [String]) -> Void
    ) -> FolderIndex.Places {
        var places = FolderIndex.Places()
        if let root = try? openRoot() {
            defer { try? root.close() }
            let device = try? FileStatus(of: root).device
            places.isComplete = device != nil
            var waiting: [(path: [String], file: String)] = [([], FolderIndex.root)]
            while let (path, parent) = waiting.popLast() {
                guard places.count < mostNames, path.count < FolderIndex.deepest,
                    let directory = Self.open(path, below: root)
                else {
                    places.isComplete = false
                    continue
                }
                defer { try? directory.close() }
                guard let names = try? directory.names() else {
                    places.isComplete = false
                    continue
                }
                for bytes in names {
                    let name = FileNameText.text(of: bytes)
                    guard isShown(bytes, in: directory) else {
                        hidden(bytes, path)
                        // The deletion of a directory was interrupted.
                        if (try? FileStatus(of: name, in: directory))?.kind == .directory { places.isComplete = false }
                        continue
                    }
                    guard parent != FolderIndex.root || !Self.isTrashName(bytes),
                        let status = try? FileStatus(of: name, in: directory), status.device == device
                    else {
                        places.isComplete = false
                        continue
                    }
                    let file = items.file(status)
                    places.add((parent, name), of: file)
                    if status.kind == .directory { waiting.append((path + [name], file)) }
                }
            }
        }
        return places
    }

    private static func open(_ path: [String], below root: FileDescriptor) -> FileDescriptor? {
        guard var current = try? root.openDirectory(named: ".") else { return nil }
        for name in path {
            let next = try? current.openDirectory(named: name)
            try? current.close()
            guard let next else { return nil }
            current = next
        }
        return current
    }
}
