import SystemPackage

/// The way from a directory down to one below it, for a walk that neither recurses nor keeps a descriptor for each level.
///
/// Only the deepest directories are open. One above them is opened again as the `..` of the one below it.
package struct DirectoryDescent: ~Copyable {
    private struct Level {
        /// In the directory above; empty at the top.
        var name: [UInt8]
        /// Those that ``next()`` has not returned.
        var names: ArraySlice<[UInt8]>
        var device: UInt64
        var inode: UInt64
    }

    /// How many directories above the deepest one stay open.
    private static let mostOpen = 32

    /// The caller closes it.
    private let top: FileDescriptor
    /// The deepest directory.
    package private(set) var directory: FileDescriptor
    /// The open directories directly above the deepest one, without the top.
    private var above: [FileDescriptor] = []
    private var levels: [Level]

    /// - Parameters:
    ///   - directory: stays open; the caller closes it.
    ///   - names: those in it to go through.
    package init(from directory: FileDescriptor, _ names: [[UInt8]]) throws(Errno) {
        let status = try FileStatus(of: directory)
        top = directory
        self.directory = directory
        levels = [Level(name: [], names: names[...], device: status.device, inode: status.inode)]
    }

    deinit {
        if levels.count > 1 { try? directory.close() }
        for directory in above { try? directory.close() }
    }

    /// The file system of the directory at the top.
    package var device: UInt64 { levels[0].device }

    /// The next name in the deepest directory; nil after the last one.
    package mutating func next() -> [UInt8]? { levels[levels.count - 1].names.popFirst() }

    /// Goes down.
    ///
    /// - Parameters:
    ///   - name: of the directory in the deepest one.
    ///   - inner: that directory, which is closed on the way up, and if this throws.
    /// - Throws: EXDEV for another file system.
    package mutating func enter(_ name: [UInt8], _ inner: FileDescriptor) throws(Errno) {
        do throws(Errno) {
            let status = try FileStatus(of: inner)
            guard status.device == device else { throw Errno.improperLink }
            let names = try inner.names()
            levels.append(Level(name: name, names: names[...], device: status.device, inode: status.inode))
        } catch {
            try? inner.close()
            throw error
        }
        if levels.count > 2 { above.append(directory) }
        if above.count > Self.mostOpen { try? above.removeFirst().close() }
        directory = inner
    }

    /// Goes up.
    ///
    /// - Returns: the name of the directory that was left; nil at the top.
    /// - Throws: EBUSY if that directory was moved elsewhere meanwhile, and the one above it is not open.
    package mutating func leave() throws(Errno) -> [UInt8]? {
        guard levels.count > 1 else { return nil }
        let outer: FileDescriptor
        if levels.count == 2 {
            outer = top
        } else if let open = above.popLast() {
            outer = open
        } else {
            outer = try reopen(levels[levels.count - 2])
        }
        try? directory.close()
        directory = outer
        return levels.removeLast().name
    }

    private func reopen(_ level: Level) throws(Errno) -> FileDescriptor {
        let outer = try directory.openDirectory(named: "..")
        do throws(Errno) {
            let status = try FileStatus(of: outer)
            guard status.device == level.device, status.inode == level.inode else { throw Errno.resourceBusy }
            return outer
        } catch {
            try? outer.close()
            throw error
        }
    }
}
