import FileNames
import FileProvider
import Syscalls
import SystemPackage

/// The files in the `info` directory of a trash: one for each item in `files`.
extension TrashInformation {
    /// The name of their directory, beside `files`.
    static let directory = "info"

    /// Opens their directory.
    ///
    /// - Parameter trash: the open `files` directory.
    static func open(of trash: FileDescriptor) throws(Errno) -> FileDescriptor {
        let top = try trash.openDirectory(named: "..")
        defer { try? top.close() }
        return try top.openDirectory(named: directory)
    }

    static func name(of name: String) -> String { shortened(name, for: ending) }

    /// A name and an ending, with the name cut so far that both are allowed together.
    static func shortened(
        _ name: String, for ending: String, atMost limit: Int = FileProviderItem.maximumFilenameLength
    ) -> String {
        var name = name
        while FileNameText.byteCount(of: name + ending) > limit { name.unicodeScalars.removeLast() }
        return name + ending
    }

    /// When an item was trashed, as its file says; nil if that says nothing.
    static func date(of item: String, in trash: FileDescriptor) -> FileTimestamp? {
        guard let information = try? open(of: trash) else { return nil }
        defer { try? information.close() }
        guard let file = try? information.openFile(named: name(of: item)) else { return nil }
        defer { try? file.close() }
        return (try? file.readBytes(at: 0, count: Int(longest))).flatMap { date(in: $0) }
    }
}
