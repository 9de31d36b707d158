import Syscalls
import SystemPackage

/// Gives a file one more place: by another name where the file system is the same, else by a copy that is compared.
enum FileTaking {
    /// - Parameter mayLink: false always copies, so that the file has no other name.
    /// - Returns: whether both are one file now.
    @discardableResult
    static func take(_ source: FilePath, to destination: FilePath, mayLink: Bool) throws -> Bool {
        if mayLink, (try? source.link(as: destination)) != nil { return true }
        try copy(source, to: destination)
        return false
    }

    /// Whether a process has a file open for writing: what it writes later would reach a file that was taken.
    static func isBeingWritten(_ file: FilePath) -> Bool {
        let options: FileDescriptor.OpenOptions = [.closeOnExec, .noFollow, .nonBlocking]
        guard let opened = try? FileDescriptor.open(file, .readOnly, options: options) else { return false }
        defer { try? opened.close() }
        return opened.isOpenForWriting
    }

    /// Whether two files are one, or hold the same bytes.
    static func isSame(_ one: FilePath, _ other: FilePath) throws -> Bool {
        let (first, second) = (try FileStatus(at: one), try FileStatus(at: other))
        if first.device == second.device, first.inode == second.inode { return true }
        guard first.kind == .regular, second.kind == .regular, first.size == second.size else { return false }
        let opened = try FileDescriptor.open(one, .readOnly, options: [.closeOnExec, .noFollow])
        defer { try? opened.close() }
        let compared = try FileDescriptor.open(other, .readOnly, options: [.closeOnExec, .noFollow])
        defer { try? compared.close() }
        return try isEqual(opened, compared, size: first.size)
    }

    /// Gives a file that was taken by a link a content of its own, of a certain size.
    static func separate(_ taken: FilePath, size: Int64) throws {
        let copied = FilePath(taken.string + ".new")
        try copied.unlinkIfPresent()
        try copy(taken, to: copied)
        let file = try FileDescriptor.open(copied, .readWrite, options: [.closeOnExec, .noFollow])
        try file.closeAfter {
            try file.setLength(size)
            try file.synchronize()
        }
        try copied.move(to: taken)
    }

    /// Gives a file that a process writes a new one with the same bytes in its place, and itself another place: there goes what
    /// the process writes from now on.
    static func leave(_ written: FilePath, to aside: FilePath) throws {
        let copied = FilePath(written.string + ".new")
        try copied.unlinkIfPresent()
        do {
            try copy(written, to: copied, mayChange: true)
            try written.link(as: aside)
            try copied.move(to: written)
        } catch {
            try? copied.unlinkIfPresent()
            throw error
        }
    }

    private static func copy(_ source: FilePath, to destination: FilePath, mayChange: Bool = false) throws {
        let old = try FileDescriptor.open(source, .readOnly, options: [.closeOnExec, .noFollow])
        defer { try? old.close() }
        let before = try FileStatus(of: old)
        let new = try FileDescriptor.open(
            destination, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec, .noFollow],
            permissions: .ownerReadWrite)
        var isWhole = false
        defer {
            try? new.close()
            if !isWhole { try? destination.unlinkIfPresent() }
        }
        var offset: Int64 = 0
        let piece: Int64 = 16 << 20
        while offset < before.size {
            let done = try new.copy(from: old, at: offset, to: offset, count: min(piece, before.size - offset))
            guard done > 0 else { break }
            offset += done
        }
        try new.synchronize()
        if !mayChange {
            guard try isEqual(old, new, size: before.size), try FileStatus(of: old).modified == before.modified else {
                throw TakingError(description: "'\(source)' was changed while it was copied")
            }
        }
        try destination.setModificationTime(to: before.modified)
        isWhole = true
    }

    private static func isEqual(_ one: FileDescriptor, _ other: FileDescriptor, size: Int64) throws -> Bool {
        guard try one.lengths().size == size, try other.lengths().size == size else { return false }
        var offset: Int64 = 0
        while offset < size {
            let count = Int(min(1 << 20, size - offset))
            let bytes = try one.readBytes(at: offset, count: count)
            guard bytes.count == count, try other.readBytes(at: offset, count: count) == bytes else { return false }
            offset += Int64(count)
        }
        return true
    }
}

/// Why files could not be taken, in words.
package struct TakingError: Error, CustomStringConvertible {
    package let description: String
}
