import FUSE
import Foundation
import Syscalls
import SystemPackage
import Volume

/// A mount that an earlier process made and left by ending: what a successor needs to serve it.
package struct PreviousMount: Sendable {
    /// What the process that mounted stored beside the table of open files.
    struct Description: Codable, Hashable, Sendable {
        var domain: String
        var session: SessionRecord
    }

    /// Where it is now, or was last, without symbolic links; encoded by `FileNameText`.
    let mountpoint: String

    /// Whether it is elsewhere than where it was made.
    var isElsewhere: Bool { !mountpoint.utf8.elementsEqual(description.session.mountPoint.utf8) }

    /// The number under which the service manager has it.
    let number: UInt32
    let device: FileDescriptor
    /// The open files, as the earlier process left them.
    let files: OpenFiles
    let description: Description
    /// The requests that the keeper has read since; nil for none.
    let missed: FileDescriptor?
    /// Whether its successor may wait for the locks of another process on the database.
    var mayWait: @Sendable () -> Bool = { true }

    /// Takes the table of open files from the inherited descriptors. The caller keeps the ownership of the others.
    ///
    /// - Throws: `HandleTableError` for a table that this program cannot read; `DecodingError` for its description.
    init(_ inherited: InheritedMount) throws {
        number = inherited.number
        device = inherited.device
        missed = inherited.missed
        files = OpenFiles(table: try HandleTable.adopt(inherited.handles))
        description = try JSONDecoder().decode(Description.self, from: Data(files.mountDescription))
        mountpoint = description.session.present(inherited.device)?.path.fileNameText ?? description.session.mountPoint
    }
}
