import CFUSEShim
import SystemPackage

/// The mounts this process sees, without touching any of them: a look at a mount asks its file system, and a dead one
/// never answers. (/proc/self/mountinfo)
package struct MountTable: Sendable {
    package struct Mount: Hashable, Sendable {
        /// `major:minor`, the same for all mounts of one file system.
        package var device: String
        /// The path, as bytes.
        package var path: [UInt8]
        /// The file system's type, such as `fuse.yonder`.
        package var type: String
        /// What is mounted, as the file system says.
        package var source: String
    }

    /// In the order in which they were mounted.
    package let mounts: [Mount]

    /// Reads the table. (open, read)
    package init() throws(Errno) {
        self.init(parsing: try Self.contents(of: "/proc/self/mountinfo"))
    }

    init(parsing text: [UInt8]) {
        mounts = text.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard fields.count > 4 else { return nil }
            // Any number of optional fields, a lone hyphen, then type and source.
            let rest = line.split(separator: UInt8(ascii: " "))
            let end = rest.dropFirst(6).firstIndex { $0.elementsEqual("-".utf8) } ?? rest.endIndex
            let tail = rest.dropFirst(end + 1).prefix(2).map { String(decoding: Self.unescape($0), as: UTF8.self) }
            return Mount(
                device: String(decoding: fields[2], as: UTF8.self), path: Self.unescape(fields[4]),
                type: tail.first ?? "", source: tail.count > 1 ? tail[1] : "")
        }
    }

    /// The mount on top at a path.
    package func mount(at path: FilePath) -> Mount? {
        let bytes = path.withPlatformString { FileName($0).bytes }
        return mounts.last { $0.path == bytes }
    }

    /// The device on top at a path.
    func device(at path: FilePath) -> String? { mount(at: path)?.device }

    /// Takes away what is mounted on a path, also when nobody serves it any more: as root by itself, as anybody else
    /// through `fusermount3`. Blocks for moments.
    ///
    /// - Throws: what `umount` says.
    package static func detach(_ path: FilePath) throws(Errno) {
        let failure = path.withPlatformString { fuseshim_unmount($0, true) }
        guard failure == 0 else { throw Errno(rawValue: failure) }
    }

    private static func contents(of path: FilePath) throws(Errno) -> [UInt8] {
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            var contents: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 1 << 14)
            while case let count = try piece.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
                contents += piece[..<count]
            }
            return contents
        } catch {
            throw error as? Errno ?? .ioError
        }
    }

    /// Blank, tab, newline and backslash stand there as a backslash and three octal digits.
    private static func unescape(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ $0 >= 48 && $0 < 56 }) {
                result.append(digits.reduce(0) { $0 &* 8 &+ ($1 - 48) })
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
